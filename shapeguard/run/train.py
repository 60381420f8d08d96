"""`shapeguard run train`: a language model or a classifier, trained with every shape fixed."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, TrainingArguments, set_seed

from shapeguard.core.errors import UsageError
from shapeguard.run import models, rows
from shapeguard.run.output import say, write
from shapeguard.run.settings import Train
from shapeguard.run.trainer import FixedShapeTrainer
from shapeguard.run.training_checks import check, checkpoint


def train(settings: Train) -> None:
    """Train, evaluate, save."""
    models.quiet()
    check(settings)
    models.device(settings)
    resumed = checkpoint(settings)
    tokenizer = models.load_tokenizer(settings, side="right")
    config = models.load_config(settings)
    buckets = models.bucket_lengths(settings, config)
    if settings.packing:
        buckets = buckets[-1:]
    classes = rows.classes_of(settings) if settings.task == "classify" else ()
    data = rows.read(settings, settings.train_file, tokenizer, longest=buckets[-1], classes=classes)
    held_out: list[rows.Row] = []
    if settings.eval_file:
        held_out = rows.read(settings, settings.eval_file, tokenizer, longest=buckets[-1], classes=classes)
    # A head that the checkpoint lacks is drawn at random, on all ranks the same.
    set_seed(settings.seed)
    trainer = FixedShapeTrainer(
        settings=settings, tokenizer=tokenizer, buckets=buckets, model=_model(settings, tokenizer, classes),
        args=arguments(settings), rows=data, held_out=held_out,
    )  # fmt: skip
    if not len(trainer.get_train_dataloader()):
        size = settings.per_device_train_batch_size
        raise UsageError(
            f"no bucket has {size} rows, so all are left out", hint="give smaller batches, or no --dataloader-drop-last"
        )
    result = trainer.train(resume_from_checkpoint=resumed)
    if held_out and not settings.eval_steps:
        trainer.evaluate()
    trainer.save_model()
    write({"step": result.global_step, "train_loss": result.training_loss, "model": settings.output_dir})
    say(f"{result.global_step} steps on {len(data)} rows: {trainer.meter.line()}")
    if dist.is_initialized():
        dist.destroy_process_group()


def arguments(settings: Train) -> TrainingArguments:
    """Give the arguments of transformers' Trainer, which picks the Neuron device by itself."""
    is_cpu = settings.device == "cpu"
    # Newer transformers call it activation_checkpointing, and warn of this name whatever its value.
    more: Any = {"gradient_checkpointing": True} if settings.gradient_checkpointing else {}
    # shapeguard: ignore[SG304] our own loader fills the short batch
    return TrainingArguments(
        output_dir=settings.output_dir,
        per_device_train_batch_size=settings.per_device_train_batch_size,
        per_device_eval_batch_size=settings.per_device_eval_batch_size or settings.per_device_train_batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation_steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        lr_scheduler_type=settings.lr_scheduler_type,
        warmup_steps=settings.warmup_steps,
        num_train_epochs=settings.num_train_epochs,
        max_steps=settings.max_steps,
        logging_steps=settings.logging_steps,
        eval_strategy="steps" if settings.eval_file and settings.eval_steps else "no",
        eval_steps=settings.eval_steps or None,
        save_strategy="steps" if settings.save_steps else "no",
        save_steps=settings.save_steps or 500,
        save_total_limit=settings.save_total_limit or None,
        # The Trainer cannot save the optimizer of a model that is sharded while it is loaded.
        save_only_model=settings.world_size > 1,
        bf16=settings.bf16,
        torch_compile=settings.torch_compile and not is_cpu,
        seed=settings.seed,
        use_cpu=is_cpu,
        report_to="none",
        log_level="error",
        log_level_replica="error",
        disable_tqdm=True,
        **more,
    )


def _model(settings: Train, tokenizer: Any, classes: tuple[str, ...]) -> Any:
    if settings.task == "causal-lm":
        return models.load_model(settings, AutoModelForCausalLM)
    names = dict(enumerate(classes))
    more = {"num_labels": len(classes), "id2label": names, "label2id": {name: each for each, name in names.items()}}
    model = models.load_model(settings, AutoModelForSequenceClassification, **more, ignore_mismatched_sizes=True)
    # Set here, since the first loss would set it, and the next batch of that bucket would be compiled again.
    model.config.problem_type = "single_label_classification"
    # A decoder classifies by its last token that is no padding.
    model.config.pad_token_id = tokenizer.pad_token_id
    return model
