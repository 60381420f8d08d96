"""The store of a world that isn't there: everything is there at once, nothing is waited for."""

from __future__ import annotations

from typing import Any

from torch.distributed import Store


class AloneStore(Store):
    """Keeps what this rank puts in."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, bytes] = {}

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self._kept[key] = value if isinstance(value, bytes) else str(value).encode()

    def get(self, key: str) -> bytes:
        """Give a value; nothing where another rank would have put it in."""
        return self._kept.get(key, b"")

    def add(self, key: str, value: Any) -> int:
        """Count up."""
        total = int(self._kept.get(key) or b"0") + int(value)
        self._kept[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        """Keep a value: nobody else has set one."""
        self.set(key, desired)
        return self._kept[key]

    def wait(self, keys: Any, timeout: Any = None) -> None:
        """Wait for nothing."""

    def check(self, keys: Any) -> bool:
        """Say that all are there."""
        return True

    def delete_key(self, key: str) -> bool:
        """Forget a value."""
        return self._kept.pop(key, None) is not None

    def num_keys(self) -> int:
        """Give how many there are."""
        return len(self._kept)

    def set_timeout(self, timeout: Any) -> None:
        """Take a limit that is never reached."""
