"""Writing a file at once: a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(target: Path, data: bytes) -> None:
    """Put the bytes in place by renaming a neighbour; mode and links of the target stay."""
    if target.exists() and not target.is_file():
        # A device or a pipe (`/dev/stdout`, `>(…)`) is written to, not replaced.
        target.write_bytes(data)
        return
    target = target.resolve()
    scratch = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
    try:
        scratch.write_bytes(data)
        if target.exists():
            scratch.chmod(target.stat().st_mode & 0o7777)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
