"""Makes prompts the inputs of a model: token ids, and pixel values where there are images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from shapeguard.buckets.keys import is_fixed
from shapeguard.core.errors import DeviceError, UsageError
from shapeguard.run import models
from shapeguard.run.prompts import Prompt
from shapeguard.run.settings import Infer

Encoded = dict[str, Any]


def encode(
    settings: Infer, config: Any, prompts: Sequence[Prompt], *, task: str, longest: int
) -> tuple[list[Encoded], Any]:
    """Give each prompt's inputs, and the tokenizer; texts are cut to `longest` only where the user allows it."""
    if task == "generate" and models.has_images(config):
        return _with_images(settings, prompts)
    if with_image := next((prompt for prompt in prompts if prompt.images), None):
        raise UsageError(f"{with_image.where}: {settings.model} takes no images", hint="leave the image out")
    tokenizer = models.load_tokenizer(settings, side="left" if task == "generate" else "right")
    texts = [_text(tokenizer, prompt) for prompt in prompts]
    # The end of a prompt is what generation goes on from; an encoder keeps the beginning and its last mark.
    tokenizer.truncation_side = "left" if task == "generate" else "right"
    cuts = {"truncation": True, "max_length": longest} if settings.truncate else {}
    # A chat's template writes the special tokens itself.
    rows = zip(texts, prompts, strict=True)
    found = [dict(tokenizer(text, add_special_tokens=not prompt.messages, **cuts)) for text, prompt in rows]
    return found, tokenizer


def _text(tokenizer: Any, prompt: Prompt) -> str:
    """Give a prompt as text; a chat by the model's own template, which also writes its special tokens."""
    if not prompt.messages:
        return prompt.text
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(f"{prompt.where}: a chat needs a template, and this tokenizer has none", hint="give texts")
    try:
        return str(tokenizer.apply_chat_template(list(prompt.messages), tokenize=False, add_generation_prompt=True))
    # Templates are programs of the model's makers, and raise what they like.
    except Exception as error:
        raise UsageError(f"{prompt.where}: the chat template refuses it: {error}") from error


def _with_images(settings: Infer, prompts: Sequence[Prompt]) -> tuple[list[Encoded], Any]:
    processor = models.load_processor(settings)
    rows = [_one(processor, prompt) for prompt in prompts]
    for row, prompt in zip(rows, prompts, strict=True):
        _check_alike(row, rows[0], prompt, prompts[0])
    return rows, processor.tokenizer


def _one(processor: Any, prompt: Prompt) -> Encoded:
    text = _text(processor, prompt)
    mark = getattr(processor, "image_token", "")
    missing = len(prompt.images) - text.count(mark) if mark else 0
    text = f"{mark}\n" * max(missing, 0) + text
    images = [_image(path, prompt) for path in prompt.images]
    try:
        found = processor(text=[text], images=images or None, return_tensors="pt")
    except (ValueError, TypeError, IndexError) as error:
        raise UsageError(f"{prompt.where}: the processor refuses it: {error}", hint="check text and images") from error
    return {name: value if is_fixed(name) else value[0].tolist() for name, value in found.items()}


def _image(path: str, prompt: Prompt) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise DeviceError("images need Pillow", hint="pip install pillow") from error
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except OSError as error:
        raise UsageError(f"{prompt.where}: {path} is no image: {error}") from error


def _check_alike(row: Encoded, first: Encoded, prompt: Prompt, other: Prompt) -> None:
    """Refuse images that would give the model another shape than the first prompt's: each is a compile."""
    mine, theirs = _shapes(row), _shapes(first)
    if mine != theirs:
        raise UsageError(
            f"{prompt.where}: its images give {mine or 'nothing'}, those of {other.where} {theirs or 'nothing'}",
            hint="give every prompt as many images, of one size",
        )


def _shapes(row: Mapping[str, Any]) -> str:
    fixed = {name: value for name, value in row.items() if is_fixed(name)}
    return ", ".join(f"{name} {_shape(value)}" for name, value in sorted(fixed.items()))


def _shape(value: torch.Tensor) -> str:
    # Sizes that stand in a tensor decide shapes in the model.
    return str(value.tolist()) if not value.is_floating_point() else "×".join(map(str, value.shape))
