"""What to do about a cause, in one line that is right for a compiler that only knows static shapes."""

from __future__ import annotations

from dataclasses import dataclass

from shapeguard.runs.breaks import OTHER, READ, SHAPE, kind_of
from shapeguard.runs.owners import Place, is_batch_dim, is_in_cache
from shapeguard.runs.series import describe, whole
from shapeguard.runs.tracks import Track
from shapeguard.runs.values import Break


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A pattern in words, the advice, and the lint rules that find such code before the run."""

    pattern: str
    advice: str
    rules: tuple[str, ...] = ()


SAME_GRAPH = Remedy(
    pattern="Dynamo compiled again, to a graph that was known",
    advice="nothing to mend: Neuron compiles nothing new for it",
)
_EACH_BUCKET = "each bucket is one graph, which is as it should be: warm all of them up before the run"


def remedy(track: Track, place: Place) -> Remedy:
    """Give what to do about a track."""
    if track.kind == "shape":
        return _generate(track) if track.first.phase == "generate" else _shape(track, place)
    if track.kind == "value":
        return _value(track)
    if track.kind == "mode":
        return _mode(track)
    if track.kind == "layout":
        return _layout(track)
    if track.origin is not None:
        return _break(track.origin)
    pattern, advice = _OTHERS.get(track.kind, _OTHERS["guard"])
    rules = ("SG401",) if track.kind == "dynamic" else ()
    return Remedy(pattern=pattern or describe(track.values), advice=advice, rules=rules)


_OTHERS = {
    "dynamic": (
        "marked dynamic, which Neuron refuses",
        "leave out mark_dynamic and dynamic=True, and pad to fixed sizes",
    ),
    "dtype": ("", "cast every input to one dtype before the call"),
    "device": ("", "keep this input on one device in every call"),
    "limit": (
        "Dynamo's recompile limit was reached: from there it runs eagerly",
        "mend the cause of the recompiles; the count stands still because every operator now compiles by itself",
    ),
    "guard": ("a guard of Dynamo failed", "make what the guard looks at the same in every call"),
}


def _layout(track: Track) -> Remedy:
    words = list(dict.fromkeys(layout_words(str(value)) for value in track.values))
    pattern = f"{', then '.join(words)}" if len(words) in (2, 3) else f"{len(track.values)} layouts, such as {words[0]}"
    advice = "give the input one memory layout: call `.contiguous()` before the call, or cut it the same way"
    return Remedy(pattern=pattern, advice=advice)


def layout_words(layout: str) -> str:
    """Say a memory layout: `permuted (1, 0)` is transposed, `slice (4, 320, …)` a slice of a larger tensor."""
    first = layout.split(", slice")[0].split(", permuted")[0]
    if first == "permuted (1, 0)":
        return "transposed"
    return "a slice of a larger tensor" if first.startswith("slice") else first


def _break(origin: Break) -> Remedy:
    reason = origin.reason or "an operation that Dynamo cannot take into a graph"
    kind = kind_of(origin.reason)
    where = (
        "breaks the graph inside a loop, so the whole function runs eagerly" if origin.is_loop else "breaks the graph"
    )
    advice, rules = _BREAKS[kind]
    return Remedy(pattern=f"{where}: {_BREAK_WORDS.get(kind) or reason}", advice=advice, rules=rules)


_BREAK_WORDS = {
    READ: "a value of a tensor is read on the host (`.item()`, `int(…)`, `if tensor:`)",
    SHAPE: "a size there depends on values",
}
_BREAKS: dict[str, tuple[str, tuple[str, ...]]] = {
    READ: (
        "keep the value on the device (torch.where in place of `if`), or read it after the compiled call",
        ("SG502",),
    ),
    SHAPE: ("keep the size: use the mask itself (torch.where, or multiply by it) instead of cutting by it", ("SG501",)),
    OTHER: ("move this call out of the compiled function: every piece is a region of its own", ()),
}


def _shape(track: Track, place: Place) -> Remedy:
    if place.role == "cut":
        advice = _BREAKS[SHAPE][0]
        pattern = f"{describe(track.values)}: cut to a size that depends on values"
        return Remedy(pattern=pattern, advice=advice, rules=("SG501",))
    if place.buckets:
        pattern = f"{len(track.values)} lengths that come again and again: buckets"
        return Remedy(pattern=pattern, advice=f"{_EACH_BUCKET}, or choose fewer (`shapeguard plan`)")
    if is_batch_dim(track):
        return _batch(track, place)
    pattern = describe(track.values, noun="lengths")
    if _is_picture(track):
        return Remedy(
            pattern=describe(track.values), advice="resize every picture to one size before the model sees it"
        )
    if pattern.startswith("grows") and place.role in ("", "move"):
        advice = "pad it to one fixed length; a buffer is allocated once at its full length and written into"
        if track.detail == "cache":
            advice = "use a cache of fixed length (StaticCache), or allocate keys and values once at their full length"
        elif track.is_cat:
            advice = (
                "`cat` lengthens it: allocate it once and write into it, or keep it on the CPU, padded for the model"
            )
        return Remedy(pattern=pattern, advice=advice)
    if place.role == "tokenize":
        rules: tuple[str, ...] = ("SG301",)
    else:
        rules = ("SG302",) if place.role in ("collate", "loader") else ()
    labels = ", labels with -100" if track.first.phase == "train" else ""
    advice = f'pad every batch to one length (padding="max_length", truncation, a fixed max_length{labels})'
    return Remedy(pattern=pattern, rules=rules, advice=advice if rules else "pad this dimension to one fixed length")


def _batch(track: Track, place: Place) -> Remedy:
    pattern = describe(track.values, noun="batch sizes")
    if pattern.startswith("halves"):
        advice = "set the batch size by hand instead of searching for it (auto_find_batch_size=False)"
        return Remedy(pattern="halves each time: a search for the batch size", advice=advice, rules=("SG306",))
    sizes = whole(track.values) or []
    if len(sizes) == 2 and sizes[1] < sizes[0] and (place.last_batch or place.role == "loader"):
        pattern += " in the last batch of each epoch" if place.last_batch else ": a short last batch"
        if track.first.phase == "eval":
            return Remedy(
                pattern=pattern, advice="pad the last batch to the full size (drop_last=True would lose its rows)"
            )
        return Remedy(
            pattern=pattern, rules=("SG304",), advice="drop the last batch (drop_last=True) or pad it to the full size"
        )
    return Remedy(
        pattern=pattern, advice="keep this size the same: drop a short batch, or fill it up with rows that do not count"
    )


def _is_picture(track: Track) -> bool:
    row = next((row for row in track.first.inputs if row.path == track.at.path), None)
    if row is None or len(row.shape) != 4 or (track.at.dim or 0) < 2:
        return False
    is_square = any(at.path == row.path and (at.dim or 0) >= 2 for at in track.also)
    return "pixel" in row.path or ("float" in row.dtype and is_square)


def _generate(track: Track) -> Remedy:
    pattern = describe(track.values, noun="lengths")
    grows = pattern.startswith("grows") or track.grows > 0
    if track.grows:
        pattern = f"grows by {track.grows} each time"
    if track.events:
        advice = "fix the cache's length for all calls: max_cache_len = the longest prompt plus the budget"
        if is_in_cache(track):
            return Remedy(pattern=f"the cache grew: {pattern}", advice=advice, rules=("SG203",))
        if grows:
            return Remedy(pattern=_each_step(pattern), advice=_STATIC, rules=("SG202",))
        return Remedy(pattern=pattern, advice="pad the prompts (on the left) to a few fixed lengths", rules=("SG204",))
    if grows and track.detail == "cache":
        return Remedy(pattern=_each_step(pattern), advice=_STATIC, rules=("SG202",))
    if grows:
        advice = "leave the inputs of generate() on the CPU: it moves what forward needs, step by step"
        return Remedy(pattern=_each_step(pattern), advice=advice, rules=("SG201",))
    return Remedy(pattern=pattern, advice="pad the prompts (on the left) to a few fixed lengths", rules=("SG204",))


_STATIC = 'use a cache of fixed length: generate(cache_implementation="static")'


def _each_step(pattern: str) -> str:
    return pattern.replace("each time", "each step")


def _value(track: Track) -> Remedy:
    name = track.at.path
    if track.eager and not track.events:
        return _eager_value(track)
    if _is_list(track):
        return Remedy(
            pattern=f"{describe(track.values)}: the length of the list",
            advice="give it the same number of items in every call (drop the rest), or compile the step for one item",
        )
    if set(track.values) & {"absent", "given", "None"}:
        return Remedy(pattern=describe(track.values), advice=f"pass `{name}` in every call or in none")
    return Remedy(
        pattern=f"a Python value baked into the graph: {describe(track.values, noun='values')}",
        advice=f"pass `{name}` as a tensor on the device, not as a Python number",
        rules=("SG503",),
    )


def _eager_value(track: Track) -> Remedy:
    pattern = f"baked into the operator: {describe(track.values, noun='values')}"
    if track.at.path == "alpha":
        advice = "the step bakes the learning rate in: use an optimizer that takes it as a tensor, such as AdamW"
        return Remedy(pattern=pattern, advice=advice, rules=("SG601",))
    return Remedy(pattern=pattern, advice=f"keep `{track.at.path}` the same in every call", rules=("SG503",))


def _is_list(track: Track) -> bool:
    name = track.at.path
    return name.startswith("len(") or any(
        row.path.startswith(f"{name}[") for event in track.events for row in event.inputs
    )


def _mode(track: Track) -> Remedy:
    name = track.at.path
    both = "both graphs are needed: warm both up before serving or timing"
    if name == "autocast":
        return Remedy(pattern=f"autocast: {describe(track.values)}", advice="use one precision for both calls")
    if "training" in (name, *(at.path for at in track.also)):
        return Remedy(pattern="train, then eval" if track.values[:1] != ["False"] else "eval, then train", advice=both)
    if name.startswith("grad of "):
        pattern = f"requires_grad: {describe(track.values)}"
        return Remedy(pattern=pattern, advice="keep requires_grad of this input the same in every call")
    return Remedy(pattern=f"{_MODES.get(name, name)}: {describe(track.values)}", advice=both)


_MODES = {"grad": "gradients on", "inference": "inference mode on"}
