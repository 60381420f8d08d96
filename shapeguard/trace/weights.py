"""`--stub-weights`: `from_pretrained` builds the model from its configuration and neither reads nor fetches weights."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

_HUB = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder", "trust_remote_code")


def stub(base: type, *, uncounted: Callable[[], AbstractContextManager[None]]) -> None:
    """Make `from_pretrained` of transformers' base class keep all its ways but the reading of weights.

    The values are those of a fresh model; placement, dtype, sharding and generation settings are what they would be, so
    graphs have the same keys. What a fresh model computes to fill itself runs under `uncounted`.
    """
    plain = base.__dict__["from_pretrained"].__func__

    @functools.wraps(plain)
    def from_pretrained(cls: Any, name: Any, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        if name is None or kwargs.get("state_dict") is not None:
            return plain(cls, name, *args, config=config, **kwargs)
        hub = {key: kwargs[key] for key in _HUB if key in kwargs}
        if config is None or isinstance(config, (str, bytes)):
            config = cls.config_class.from_pretrained(config or name, **hub)
        if kwargs.get("generation_config") is None and cls.can_generate():
            kwargs["generation_config"] = _generation_config(name, config, hub)
        with uncounted(), _quiet("transformers.modeling_utils"):
            return plain(cls, None, *args, config=config, state_dict={}, **kwargs)

    loader: Any = from_pretrained
    base.from_pretrained = classmethod(loader)  # type: ignore[attr-defined]


def _generation_config(name: Any, config: Any, hub: dict[str, Any]) -> Any:
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(name, **hub)
    except OSError:
        return GenerationConfig.from_model_config(config)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library from listing every weight that was not read."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
