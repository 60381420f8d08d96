"""The plan as something to use: `buckets.toml`, code to paste, a server's options, jobs to lock and warm up."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shapeguard.buckets.choose import GRAPHS
from shapeguard.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Buckets and how they are used."""

    buckets: tuple[int, ...]
    rows: tuple[int, ...]
    align: int = 1
    use: str = "infer"
    batch_size: int | None = None
    """Rows of every batch."""
    batch_tokens: int | None = None
    """Tokens of every batch instead: the shorter the bucket, the more rows."""
    job: str = ""
    """A command line in which {bucket} and {batch} stand for a bucket's values."""

    def batch_of(self, bucket: int) -> int | None:
        """Give the rows of a batch, where something says so."""
        if self.batch_tokens is not None:
            return max(1, self.batch_tokens // bucket)
        return self.batch_size


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
    return f'''"""Batches of {_some(plan, "shape")} for training."""

from shapeguard.buckets import BucketCollator, BucketRows, BucketSampler
from torch.utils.data import DataLoader

# The length of a bucket, and how many rows a batch of it has on one rank.
BUCKETS = {_with_batches(plan)}


def bucket_loader(dataset, tokenizer, *, seed=0, **options):
    """Give a loader; before each epoch call `loader.batch_sampler.set_epoch(epoch)`."""
    sampler = BucketSampler([len(row["input_ids"]) for row in dataset], BUCKETS, seed=seed)
    collate = BucketCollator(tokenizer, BUCKETS, causal_labels=True)
    return DataLoader(BucketRows(dataset), batch_sampler=sampler, collate_fn=collate, **options)
'''


def _prompts(plan: Definition) -> str:
    return f'''"""Generation with prompts of {_some(plan, "length")}."""

from shapeguard.buckets import pad_to_bucket

BUCKETS = {list(plan.buckets)}
MAX_NEW_TOKENS = 256


def generate(model, tokenizer, prompts, **options):
    """Give the new tokens of each prompt; the inputs stay on the CPU, `generate()` moves what it needs."""
    inputs = pad_to_bucket(tokenizer(prompts), BUCKETS, tokenizer=tokenizer)
    output = model.generate(
        **inputs,
        max_new_tokens=MAX_NEW_TOKENS,
        cache_implementation="static",
        max_cache_len=BUCKETS[-1] + MAX_NEW_TOKENS,
        **options,
    )
    return output[:, inputs["input_ids"].shape[1] :]
'''


def _vllm(plan: Definition) -> str:
    longest = plan.buckets[-1]
    config = {"neuron_config": {"num_batched_tokens_buckets": list(plan.buckets)}}
    return f"--max-num-batched-tokens {longest} --additional-config {shlex.quote(json.dumps(config))}\n"


def _jobs(plan: Definition) -> str:
    template = plan.job or f"-m shapeguard run {plan.use} --buckets {{bucket}}"
    blocks = []
    for bucket in plan.buckets:
        words = [_filled(word, bucket, plan.batch_of(bucket)) for word in _words(template)]
        blocks.append(
            f"[tool.shapeguard.jobs.{plan.use}-{bucket}]\n"
            f"command = {json.dumps(words, ensure_ascii=False)}\n"
            f"budget = {{ graphs = {GRAPHS[plan.use]}, after-warmup = 0 }}\n"
        )
    return "\n".join(blocks)


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
