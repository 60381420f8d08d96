"""Loads models and tokenizers onto the device, on one process or on many; what goes wrong there is one clear line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig, AutoProcessor, AutoTokenizer, DistributedConfig

from shapeguard.buckets.spec import lengths_of
from shapeguard.core.errors import DeviceError, UsageError
from shapeguard.run.settings import DEFAULT_BUCKETS, Infer, Train


def device(settings: Infer | Train) -> str:
    """Give torch's name of the device."""
    if settings.device == "cpu":
        return "cpu"
    neuron = getattr(torch, "neuron", None)
    if neuron is None or not neuron.is_available():
        raise DeviceError("torch sees no Neuron device here", hint="use --device sim, or install torch-neuronx")
    return "neuron"


def load_config(settings: Infer | Train) -> Any:
    """Read the model's configuration."""
    with told(settings.model):
        return AutoConfig.from_pretrained(settings.model)


def load_model(settings: Infer | Train, auto: Any, **more: Any) -> Any:
    """Load a model onto the device, or its share of it onto this rank's: never with `device_map="auto"`."""
    with told(settings.model):
        if settings.world_size > 1:
            sizes = DistributedConfig(tp_size=settings.tp, fsdp_size=settings.fsdp)
            return auto.from_pretrained(settings.model, dtype=settings.dtype, distributed_config=sizes, **more)
        place = "neuron" if device(settings) == "neuron" else None
        return auto.from_pretrained(settings.model, dtype=settings.dtype, device_map=place, **more)


def load_tokenizer(settings: Infer | Train, *, side: str) -> Any:
    """Load the tokenizer; where it has no padding token the end token pads, masked as padding always is."""
    with told(settings.model):
        return with_padding(AutoTokenizer.from_pretrained(settings.model, padding_side=side), settings)


def load_processor(settings: Infer | Train) -> Any:
    """Load what makes texts and images a model's inputs."""
    with told(settings.model):
        processor = AutoProcessor.from_pretrained(settings.model)
    with_padding(processor.tokenizer, settings)
    return processor


def with_padding(tokenizer: Any, settings: Infer | Train) -> Any:
    """Give the tokenizer a padding token."""
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise UsageError(f"the tokenizer of {settings.model} has no padding and no end token")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def bucket_lengths(settings: Infer | Train, config: Any, budget: int = 0) -> tuple[int, ...]:
    """Give the buckets; one that the model cannot take, with what is generated after it, is an error."""
    longest = getattr(config.get_text_config(), "max_position_embeddings", None)
    if not settings.buckets:
        fitting = [each for each in DEFAULT_BUCKETS if longest is None or each + budget <= longest]
        if not fitting:
            raise UsageError(f"{settings.model} takes {longest} tokens, none of 128 and 512", hint="give --buckets")
        return tuple(fitting)
    found = lengths_of(settings.buckets)
    if longest is not None and found[-1] + budget > longest:
        after = f" and {budget} new tokens" if budget else ""
        raise UsageError(
            f"{settings.model} takes {longest} tokens: a bucket of {found[-1]}{after} does not fit",
            hint="give smaller --buckets" + (", or fewer --max-new-tokens" if budget else ""),
        )
    return found


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn the many errors of loading into one line that names the model."""
    try:
        yield
    except (OSError, ValueError, ImportError, KeyError, SafetensorError) as error:
        raise UsageError(f"cannot load {name}: {_first_sentence(error)}", hint="check --model") from error


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    end = text.find(". ")
    return (text if end < 0 else text[:end])[:200] or type(error).__name__


def quiet() -> None:
    """Leave standard error to what the user must know."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    # Torch warns its own FSDP of a collective that is to get another name.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch")


def has_images(config: Any) -> bool:
    """Whether it is a vision-language model."""
    return getattr(config, "vision_config", None) is not None
