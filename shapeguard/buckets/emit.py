"""The plan as something to use: `buckets.toml`, code to paste, a server's options, jobs to lock and warm up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from shapeguard.buckets.choose import GRAPHS
from shapeguard.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Buckets and how they are used."""

    buckets: tuple[int, ...]
    rows: tuple[int, ...]
    align: int = 1
    use: str = "infer"
    misfits: int = 0
    """Rows that are longer than the largest bucket and were left out of the plan."""
    truncate: bool = False
    """Longer rows are cut."""
    batch_size: int | None = None
    """Rows of every batch."""
    batch_sizes: Mapping[int, int] = field(default_factory=dict)
    """The same bucket by bucket, as a `buckets.toml` gives it."""
    batch_tokens: int | None = None
    """Tokens of every batch instead: the shorter the bucket, the more rows."""
    job: str = ""
    """A command line in which {bucket} and {batch} stand for a bucket's values."""
    model: str = ""
    """The model that jobs run."""
    data: str = ""
    """The rows that jobs run on."""

    def batch_of(self, bucket: int) -> int | None:
        """Give the rows of a batch, where something says so."""
        if self.batch_tokens is not None:
            return max(1, self.batch_tokens // bucket)
        return self.batch_size or self.batch_sizes.get(bucket)


def render(kind: str, plan: Definition) -> str:
    """Give the text of one kind, with a last newline."""
    return _KINDS[kind](plan)


def _toml(plan: Definition) -> str:
    lines = [
        "# Lengths that batches are padded to, for BucketCollator, BucketSampler and pad_to_bucket.",
        "schema = 1",
        f"align = {plan.align}",
        f'for = "{plan.use}"',
    ]
    for bucket, rows in zip(plan.buckets, plan.rows, strict=True):
        lines += ["", "[[bucket]]", f"length = {bucket}", f"rows = {rows}"]
        batch = plan.batch_of(bucket)
        if batch is not None:
            lines.append(f"batch-size = {batch}")
    return "\n".join(lines) + "\n"


def _collator(plan: Definition) -> str:
    cut = ", truncate=True" if plan.truncate else ""
    longer = "are cut" if plan.truncate else "are left out"
    return f'''"""Batches of {_some(plan, "shape")} for training."""

from shapeguard.buckets import BucketCollator, BucketRows, BucketSampler
from torch.utils.data import DataLoader{"" if plan.truncate else ", Subset"}

# The length of a bucket, and how many rows a batch of it has on one rank.
BUCKETS = {_with_batches(plan)}


def bucket_loader(dataset, tokenizer, *, seed=0, **options):
    """Give a loader; before each epoch call `loader.batch_sampler.set_epoch(epoch)`.

    Rows of more than {plan.buckets[-1]} tokens {longer}.
    """
    lengths = [len(row["input_ids"]) for row in dataset]
{"" if plan.truncate else _LEAVES_OUT}    sampler = BucketSampler(lengths, BUCKETS, seed=seed{cut})
    collate = BucketCollator(tokenizer, BUCKETS, causal_labels=True{cut})
    return DataLoader(BucketRows(dataset), batch_sampler=sampler, collate_fn=collate, **options)
'''


_LEAVES_OUT = """\
    fitting = [index for index, length in enumerate(lengths) if length <= max(BUCKETS)]
    dataset, lengths = Subset(dataset, fitting), [lengths[index] for index in fitting]
"""


def _prompts(plan: Definition) -> str:
    cut = ", truncate=True" if plan.truncate else ""
    longer = "keeps its end" if plan.truncate else "is an error"
    return f'''"""Generation with prompts of {_some(plan, "length")}."""

from shapeguard.buckets import pad_to_bucket

BUCKETS = {list(plan.buckets)}
MAX_NEW_TOKENS = 256  # the static cache has room for the longest prompt and so many


def generate(model, tokenizer, prompts, *, max_new_tokens=MAX_NEW_TOKENS, **options):
    """Give the new tokens of each prompt; the inputs stay on the CPU, `generate()` moves what it needs.

    A prompt of more than {plan.buckets[-1]} tokens {longer}.
    """
    if max_new_tokens > MAX_NEW_TOKENS:
        raise ValueError(f"the cache has no room for {{max_new_tokens}} new tokens: raise MAX_NEW_TOKENS")
    inputs = pad_to_bucket(tokenizer(prompts), BUCKETS, tokenizer=tokenizer{cut})
    cache = {{"cache_implementation": "static", "max_cache_len": BUCKETS[-1] + MAX_NEW_TOKENS}}
    output = model.generate(**inputs, max_new_tokens=max_new_tokens, **{{**cache, **options}})
    return output[:, inputs["input_ids"].shape[1] :]
'''


def _vllm(plan: Definition) -> str:
    """Give a server's options: its lists ascend, and the last of each must be the server's own limit."""
    longest = plan.buckets[-1]
    neuron: dict[str, list[int]] = {"num_batched_tokens_buckets": list(plan.buckets)}
    words = [f"--max-num-batched-tokens {longest}"]
    batches = {plan.batch_of(bucket) for bucket in plan.buckets}
    # A step of decoding has one batch size whatever the prompts were: several cannot be said.
    if len(batches) == 1 and (batch := batches.pop()):
        neuron["num_seqs_buckets"] = [batch]
        words.append(f"--max-num-seqs {batch}")
    words.append(f"--additional-config {shlex.quote(json.dumps({'neuron_config': neuron}))}")
    return " ".join(words) + "\n"


def _jobs(plan: Definition) -> str:
    blocks = []
    for name, command, num_buckets in _commands(plan):
        # What is shown first may compile; two steps are the default.
        warmup = f"warmup-steps = {num_buckets}\n" if num_buckets > 2 else ""
        blocks.append(
            f"[tool.shapeguard.jobs.{name}]\n"
            f"command = {json.dumps(command, ensure_ascii=False)}\n{warmup}"
            f"budget = {{ graphs = {num_buckets * GRAPHS[plan.use]}, after-warmup = 0 }}\n"
        )
    return "\n".join(blocks)


def _commands(plan: Definition) -> Iterator[tuple[str, list[str], int]]:
    """Give name, words and number of buckets of each job."""
    if not plan.job and plan.use == "infer":
        # One for all: its static cache is as long as the largest bucket asks for, also for the shorter prompts.
        lengths = ",".join(map(str, plan.buckets))
        # The runner has one batch size: the one that is meant for the longest rows.
        yield plan.use, _runner(plan, lengths, plan.batch_of(plan.buckets[-1])), len(plan.buckets)
        return
    words = _words(plan.job) if plan.job else []
    for bucket in plan.buckets:
        batch = plan.batch_of(bucket)
        own = [_filled(word, bucket, batch) for word in words] or _runner(plan, str(bucket), batch)
        yield f"{plan.use}-{bucket}", own, 1


def _runner(plan: Definition, lengths: str, batch: int | None) -> list[str]:
    """Give the words of the runner that comes with shapeguard."""
    if not (plan.model and plan.data):
        raise UsageError(
            "a job needs to know what it runs",
            hint='give --job "train.py --length {bucket}", or --model FOLDER and --data FILE for `shapeguard run`',
        )
    is_training = plan.use == "train"
    words = ["-m", "shapeguard", "run", plan.use, "--model", plan.model, "--buckets", lengths, "--truncate"]
    words += ["--train-file" if is_training else "--file", plan.data]
    if batch:
        words += ["--per-device-train-batch-size" if is_training else "--batch-size", str(batch)]
    return words + (["--max-steps", "4"] if is_training else [])


def _words(template: str) -> list[str]:
    try:
        return shlex.split(template)
    except ValueError as error:
        raise UsageError(f"--job {template!r} is no command line: {error}") from error


def _filled(word: str, bucket: int, batch: int | None) -> str:
    if batch is None and "{batch}" in word:
        raise UsageError("--job has {batch}, and no batch size is known", hint="give --batch-size or --batch-tokens")
    return word.replace("{bucket}", str(bucket)).replace("{batch}", str(batch))


def _with_batches(plan: Definition) -> str:
    known = {bucket: plan.batch_of(bucket) for bucket in plan.buckets}
    if None in known.values():
        raise UsageError(
            "the collator's code needs to know the rows of a batch", hint="give --batch-size or --batch-tokens"
        )
    return repr(known)


def _some(plan: Definition, noun: str) -> str:
    number = len(plan.buckets)
    return f"{number} {noun}{'' if number == 1 else 's'}"


_KINDS: Mapping[str, Callable[[Definition], str]] = {
    "toml": _toml,
    "collator": _collator,
    "prompts": _prompts,
    "vllm": _vllm,
    "jobs": _jobs,
}
KINDS = tuple(_KINDS)
