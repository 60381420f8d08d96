"""`shapeguard run infer`: texts, embeddings or classes for prompts, with every shape fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSequenceClassification,
)

from shapeguard.core.errors import UsageError
from shapeguard.run import models
from shapeguard.run.batches import Batch, InOrder, check_lengths, cut
from shapeguard.run.encode import Classifier, Embedder, Encoder
from shapeguard.run.generate import Generator, Streamer
from shapeguard.run.inputs import encode
from shapeguard.run.meter import Meter
from shapeguard.run.output import say, write, write_text
from shapeguard.run.prompts import Prompt, read_prompts
from shapeguard.run.settings import Infer

Row = dict[str, Any]
Run = Callable[[Batch], list[Row]]


def infer(settings: Infer) -> None:
    """Run all prompts through the model and write the results in the order of the prompts."""
    models.quiet()
    models.device(settings)
    prompts = read_prompts(settings.prompts, settings.file, column=settings.column, shown=settings.shown)
    config = models.load_config(settings)
    task = task_of(settings, config)
    budget = settings.max_new_tokens if task == "generate" else 0
    buckets = models.bucket_lengths(settings, config, budget)
    encoded, reader = encode(settings, config, prompts, task=task, longest=buckets[-1])
    whole = [len(row["input_ids"]) for row in encoded]
    # Of a text with images no part can be cut away: the image has its place in it.
    can_cut = not settings.truncate and not models.has_images(config)
    lengths = check_lengths(whole, [prompt.where for prompt in prompts], buckets, can_cut=can_cut)
    torch.manual_seed(settings.seed)
    run = _runner(settings, config, task=task, encoded=encoded, reader=reader, buckets=buckets)
    _all(settings, prompts, lengths, cut(lengths, buckets, settings.batch_size), run)


def task_of(settings: Infer, config: Any) -> str:
    """Give what the model is for, unless the user says."""
    names = " ".join(config.architectures or ())
    if config.is_encoder_decoder and settings.task in ("auto", "generate"):
        raise UsageError(
            f"{settings.model} is an encoder-decoder model, which this runner does not run",
            hint="its encoder's inputs belong on the device: see docs/runners.md",
        )
    if settings.task != "auto":
        return settings.task
    if "SequenceClassification" in names:
        return "classify"
    return "generate" if "CausalLM" in names or "ConditionalGeneration" in names or "LMHead" in names else "embed"


def _runner(
    settings: Infer, config: Any, *, task: str, encoded: Sequence[Row], reader: Any, buckets: tuple[int, ...]
) -> Run:
    if task == "generate":
        auto = AutoModelForImageTextToText if models.has_images(config) else AutoModelForCausalLM
        model = models.load_model(settings, auto).eval()
        generator = Generator(model=model, tokenizer=reader, buckets=buckets, settings=settings)
        return partial(_generate, generator, encoded)
    if task == "embed":
        model = models.load_model(settings, AutoModel)
        encoder = Encoder(Embedder(model, pooling=settings.pooling, normalize=settings.normalize), reader)
        _check_longest(settings, encoder, buckets)
        return lambda batch: [{"embedding": row} for row in encoder.run(encoded, batch).tolist()]
    model = models.load_model(settings, AutoModelForSequenceClassification)
    classifier = Encoder(Classifier(model), reader)
    _check_longest(settings, classifier, buckets)
    labels = dict(model.config.id2label)
    return lambda batch: [_class(row, labels) for row in classifier.run(encoded, batch).tolist()]


def _check_longest(settings: Infer, encoder: Encoder, buckets: tuple[int, ...]) -> None:
    if encoder.longest is not None and buckets[-1] > encoder.longest:
        raise UsageError(
            f"{settings.model} takes {encoder.longest} tokens: a bucket of {buckets[-1]} does not fit",
            hint="give smaller --buckets",
        )


def _generate(generator: Generator, encoded: Sequence[Row], batch: Batch) -> list[Row]:
    settings = generator.settings
    streamer = Streamer(generator.tokenizer, batch.rows, partial(_piece, settings)) if settings.stream else None
    return generator.run(encoded, batch, streamer)


def _piece(settings: Infer, number: int, text: str) -> None:
    if settings.text:
        write_text(text)
    else:
        write({"index": number, "piece": text})


def _class(row: Sequence[float], labels: dict[int, str]) -> Row:
    best = max(range(len(row)), key=row.__getitem__)
    return {"label": labels.get(best, str(best)), "score": row[best], "scores": row}


def _all(
    settings: Infer, prompts: Sequence[Prompt], lengths: Sequence[int], batches: Sequence[Batch], run: Run
) -> None:
    meter = Meter()
    ordered: InOrder[Row] = InOrder(partial(_write, settings))
    num_new = 0
    for batch in batches:
        meter.batch_begins()
        results = run(batch)
        real = sum(lengths[number] for number in batch.rows)
        new = sum(result.get("tokens", 0) for result in results)
        num_new += new
        meter.batch_ended(batch.bucket, real=real, whole=batch.bucket * batch.size, new=new)
        for number, result in zip(batch.rows, results, strict=True):
            named = {"prompt": prompts[number].text} if prompts[number].text else {}
            ordered.put(number, {"index": number, **named, **result, "bucket": batch.bucket})
    made = f", {num_new} new tokens" if num_new else ""
    say(f"{len(prompts)} prompts in {len(batches)} batches of {settings.batch_size}{made}: {meter.line()}")


def _write(settings: Infer, row: Row) -> None:
    if not settings.text:
        write(row)
    elif settings.stream:
        write_text("\n")
    else:
        write_text(str(row.get("text", row.get("label", row.get("embedding")))) + "\n")
