"""Say what a row of values does: grows, halves, has no pattern."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Value = int | str


def describe(values: Sequence[Value], *, noun: str = "sizes") -> str:
    """Give the pattern of distinct values in the order seen: "grows by 1", "4 lengths, no pattern"."""
    numbers = whole(values)
    if numbers is None or len(numbers) < 2:
        return ", then ".join(map(str, values)) if len(values) <= 3 else f"{len(values)} {noun}"
    if len(numbers) == 2:
        return f"{numbers[0]}, then {numbers[1]}"
    if step := stride(numbers):
        return f"{'grows' if step > 0 else 'shrinks'} by {abs(step)} each time"
    if all(2 * b in (a, a - 1) for a, b in itertools.pairwise(numbers)):
        return "halves each time"
    if all(b == 2 * a for a, b in itertools.pairwise(numbers)):
        return "doubles each time"
    if all(a < b for a, b in itertools.pairwise(numbers)):
        return f"{len(numbers)} {noun}, growing"
    if multiple := common_multiple(numbers):
        return f"{len(numbers)} {noun}, all multiples of {multiple}"
    return f"{len(numbers)} {noun}, no pattern"


def whole(values: Sequence[Value]) -> list[int] | None:
    """Give the values as whole numbers, or None where one is none."""
    numbers = [value for value in values if isinstance(value, int)]
    return numbers if len(numbers) == len(values) else None


def stride(numbers: Sequence[int]) -> int:
    """Give the constant step of three or more numbers, 0 where there is none."""
    if len(numbers) < 3:
        return 0
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else 0


def common_multiple(numbers: Sequence[int]) -> int:
    """Give the largest usual padding multiple that divides all, 0 where there is none."""
    return next((m for m in (512, 256, 128, 64, 32, 16, 8) if all(n % m == 0 for n in numbers)), 0)


def short(values: Sequence[Value], *, most: int = 6) -> str:
    """Give the values for a table: `5, 3, 4, 2`, a long row as `10, 11, 12 … 17`."""
    texts = [plain(value) for value in values]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[: most - 2])} … {texts[-1]}"


def plain(value: Value) -> str:
    """Give a value for reading: a float without the digits that are only noise."""
    if isinstance(value, str) and value[-1:].isdigit() and "." in value:
        try:
            return f"{float(value):.6g}"
        except ValueError:
            return value
    return str(value)
