"""The Trainer of transformers with fixed shapes: its loaders, its evaluation, and what it logs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback

from shapeguard.buckets import BucketCollator, BucketRows, BucketSampler
from shapeguard.run.meter import Meter, graphs
from shapeguard.run.output import write
from shapeguard.run.settings import Train

Rows = Sequence[Mapping[str, Any]]


class Batches(DataLoader[Any]):
    """A loader that hands the epoch on to its sampler, which shuffles by it."""

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]


class FixedShapeTrainer(Trainer):
    """A Trainer all of whose batches have one of a few shapes, in training and in evaluation."""

    def __init__(
        self, *, settings: Train, tokenizer: Any, buckets: tuple[int, ...], rows: Rows, held_out: Rows, **more: Any
    ) -> None:
        super().__init__(processing_class=tokenizer, train_dataset=rows, eval_dataset=held_out or None, **more)
        self.rows = rows
        self.held_out = held_out
        self.settings = settings
        self.tokenizer = tokenizer
        self.buckets = buckets
        self.meter = Meter()
        self.remove_callback(PrinterCallback)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Give batches of one bucket each; this is the one loader, on each rank its own rows."""
        size, drop_last = self.args.per_device_train_batch_size, self.settings.dataloader_drop_last
        return self._loader(self.rows, size, shuffle=True, drop_last=drop_last)

    def _loader(self, rows: Rows, size: int, *, shuffle: bool, drop_last: bool) -> DataLoader[Any]:
        tp = self.settings.tp
        # Ranks that share layers see the same rows.
        rank, world = int(os.environ.get("RANK", "0")) // tp, self.settings.world_size // tp
        sampler = BucketSampler(
            [len(row["input_ids"]) for row in rows], self.buckets, batch_size=size,
            shuffle=shuffle, seed=self.args.seed, drop_last=drop_last, rank=rank, world_size=world,
        )  # fmt: skip
        collate = BucketCollator(
            self.tokenizer, self.buckets, batch_size=size, causal_labels=self.settings.task == "causal-lm"
        )
        return Batches(BucketRows(rows), batch_sampler=sampler, collate_fn=collate)

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any, **more: Any) -> Tensor:
        """Count the batch around the step."""
        mask = inputs["attention_mask"]
        self.meter.batch_begins()
        loss: Tensor = super().training_step(model, inputs, *args, **more)
        self.meter.batch_ended(mask.shape, real=int(mask.sum()), whole=mask.numel())
        return loss

    def evaluate(self, *args: Any, **more: Any) -> dict[str, float]:
        """Give the loss over all labels; each row counts once, and those that fill a batch not at all."""
        # Not `drop_last`: a dropped row would be missing in the result.
        loader = self._loader(self.held_out, self.args.per_device_eval_batch_size, shuffle=False, drop_last=False)
        self.model_wrapped.eval()
        sums = torch.zeros(3, dtype=torch.float64)
        for batch in loader:
            sums += self._judged(batch)
        if self.settings.world_size > 1:
            sums = self._over_ranks(sums)
        loss, right, number = sums.tolist()
        found = {"eval_loss": loss / number, "eval_labels": number}
        if self.settings.task == "classify":
            found["eval_accuracy"] = right / number
        self.log(found)
        return found

    @torch.no_grad()
    def _judged(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The sum of the losses of a batch, how many answers are right, and how many labels there are."""
        labels = batch["labels"][..., 1:] if self.settings.task == "causal-lm" else batch["labels"]
        number = int((labels != -100).sum())
        # On every rank, also where the rank has masked rows only: the collectives in it are waited for.
        outputs = self.model_wrapped(**self._prepare_inputs(dict(batch)))
        loss = float(outputs.loss) * number if number else 0.0
        right = 0
        if self.settings.task == "classify":
            right = int((outputs.logits.cpu().argmax(-1) == labels).sum())
        return torch.tensor([loss, right, number], dtype=torch.float64)

    def _over_ranks(self, sums: Tensor) -> Tensor:
        """Add up what the ranks saw; those of one tensor-parallel group saw the same."""
        parts: list[Any] = [None] * self.settings.world_size
        dist.all_gather_object(parts, sums.tolist())
        return torch.tensor(parts, dtype=torch.float64).sum(0) / self.settings.tp

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Write a line with the figures of shapes beside the usual ones."""
        super().log(logs, start_time)
        meter = self.meter
        figures = {
            "tokens_per_s": round(meter.per_second, 1),
            "padding": round(meter.padding, 4),
            "graphs": graphs(),
            "late_compiles": meter.late,
        }
        write({"step": self.state.global_step, **logs, **figures})
