"""Moving many things at once: some in parallel, each tried again with longer and longer pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from shapeguard.cache.remote import TransientError

TRIES = 6
PARALLEL = 8
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many of how many are done."""


def quiet(done: int, total: int) -> None:
    """Say nothing."""


def retried(work: Callable[[], Result], *, tries: int = TRIES, pause: Callable[[float], None] = time.sleep) -> Result:
    """Do something that may fail for a while; the last failure is raised."""
    for attempt in range(1, tries):
        try:
            return work()
        except TransientError:
            # A random part, so that many machines that failed together do not come back together.
            longest = min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
            pause(longest * random.uniform(0.5, 1.0))
    return work()


def at_once(
    works: Sequence[Callable[[], Result]], *, progress: Progress = quiet, parallel: int = PARALLEL
) -> list[Result]:
    """Do things in parallel and give their results in order; the first failure stops what has not begun."""
    if not works:
        return []
    done = 0
    with ThreadPoolExecutor(max_workers=min(parallel, len(works))) as pool:

        def count(work: Callable[[], Result]) -> Result:
            nonlocal done
            result = retried(work)
            done += 1
            progress(done, len(works))
            return result

        futures = [pool.submit(count, work) for work in works]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    failed = next(
        (future for future in futures if future.done() and not future.cancelled() and future.exception()), None
    )
    if failed is not None:
        failed.result()
    return [future.result() for future in futures]
