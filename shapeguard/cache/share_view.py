"""Push, pull, export and import as reports."""

from __future__ import annotations

from collections.abc import Sequence

from shapeguard.cache.pull import PullPlan
from shapeguard.cache.push import PushPlan
from shapeguard.cache.view import SCHEMA, counted, size
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Text

_SHOWN = 10


def pushed(
    plan: PushPlan,
    where: str,
    *,
    dry_run: bool,
    verbs: tuple[str, str] = ("send", "sent"),
    troubles: Sequence[tuple[str, str]] = (),
) -> Report:
    """Give what was sent, or would be; `verbs` is what that is called; `troubles`: manifests not added to."""
    num_neffs = plan.num_neffs
    num_records = len(plan.uploads) - num_neffs
    would = f"would {verbs[0]}" if dry_run else verbs[1]
    text = (
        f"{would} {counted(num_records, 'record')} and {counted(num_neffs, 'NEFF')}, {size(plan.num_bytes)}, to {where}"
    )
    text += _already(plan.num_there, plan.num_neffs_there, "there")
    manifests: list[JSON] = [each.name for each in plan.manifests]
    absent: list[JSON] = [*plan.absent]
    return Report(
        tool="cache",
        sections=(Text(text=text), *_absent(plan)),
        problems=_problems(troubles),
        document={
            "schema": SCHEMA,
            "dry_run": dry_run,
            "records": num_records,
            "neffs": num_neffs,
            "bytes": plan.num_bytes,
            "there_already": plan.num_there,
            "neffs_there_already": plan.num_neffs_there,
            "neffs_absent": absent,
            "manifests": manifests,
            "problems": _plain(troubles),
        },
        exit_code=Exit.FAILED if troubles else Exit.CLEAN,
    )


def _already(num_records: int, num_neffs: int, where: str) -> str:
    """Say what was there before."""
    parts = [counted(num_records, "record")] if num_records else []
    parts += [counted(num_neffs, "NEFF")] if num_neffs else []
    verb = "was" if num_records + num_neffs == 1 else "were"
    return f"; {' and '.join(parts)} {verb} {where} already" if parts else ""


def _absent(plan: PushPlan) -> tuple[Text, ...]:
    """Say which compiled files records name and the folder lacks."""
    if not plan.absent:
        return ()
    some = ", ".join(plan.absent[:_SHOWN]) + (" …" if len(plan.absent) > _SHOWN else "")
    return (Text(text=f"{counted(len(plan.absent), 'NEFF')} of these records not in the folder: {some}"),)


def _problems(troubles: Sequence[tuple[str, str]]) -> tuple[Problem, ...]:
    return tuple(Problem(path=name, message=message) for name, message in troubles[:_SHOWN])


def _plain(troubles: Sequence[tuple[str, str]]) -> list[JSON]:
    return [{"name": name, "message": message} for name, message in troubles]


def pulled(
    plan: PullPlan, where: str, *, num_new: int, dry_run: bool, verbs: tuple[str, str] = ("fetch", "fetched")
) -> Report:
    """Give what was fetched, or would be, and what a lock names and the remote lacks."""
    would = f"would {verbs[0]}" if dry_run else verbs[1]
    records, neffs = counted(len(plan.entries), "record"), counted(plan.num_neffs, "NEFF")
    text = f"{would} {records} and {neffs}, {size(plan.num_bytes)}, from {where}"
    text += _already(plan.num_here, 0, "here")
    sections = [Text(text=text)]
    if plan.missing:
        some = ", ".join(key[:12] for key in sorted(plan.missing)[:_SHOWN])
        what = "1 graph of the lock is" if len(plan.missing) == 1 else f"{len(plan.missing):,} graphs of the lock are"
        more = f" and {len(plan.missing) - _SHOWN} more" if len(plan.missing) > _SHOWN else ""
        sections.append(Text(text=f"{what} not there: {some}{more}", strong=True))
    if len(plan.troubles) > _SHOWN:
        sections.append(Text(text=f"{len(plan.troubles)} manifests cannot be used; the first {_SHOWN} are named"))
    missing: list[JSON] = [*sorted(plan.missing)]
    return Report(
        tool="cache",
        sections=tuple(sections),
        problems=_problems(plan.troubles),
        document={
            "schema": SCHEMA,
            "dry_run": dry_run,
            "records": len(plan.entries),
            "new": num_new,
            "neffs": plan.num_neffs,
            "bytes": plan.num_bytes,
            "here_already": plan.num_here,
            "missing": missing,
            "problems": _plain(plan.troubles),
        },
        exit_code=Exit.FAILED if plan.troubles else Exit.FINDINGS if plan.missing else Exit.CLEAN,
    )
