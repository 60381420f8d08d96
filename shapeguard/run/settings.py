"""What a user can set for the runners, and how the process that does the work learns of it. Never imports torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

DEVICES = ("auto", "neuron", "sim", "cpu")
DTYPES = ("auto", "float32", "bfloat16", "float16")
TASKS = ("auto", "generate", "embed", "classify")
POOLINGS = ("mean", "cls", "last")
DEFAULT_BUCKETS = (128, 512)
FAILED = "failed.json"
"""In the scratch folder: the mistake that ranks found, for the process that started them to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What both runners need."""

    model: str
    """A folder, or a name on the Hugging Face hub."""
    device: str = "auto"
    dtype: str = "auto"
    tp: int = 1
    """Devices that share each layer; processes = tp × fsdp."""
    fsdp: int = 1
    buckets: str = ""
    """As `shapeguard.buckets` reads them; empty: 128,512, as far as the model takes them."""
    truncate: bool = False
    seed: int = 0
    scratch: str = ""
    """Folder in which a process that torchrun starts leaves what must reach the user."""

    @property
    def world_size(self) -> int:
        """How many processes it takes."""
        return self.tp * self.fsdp


@dataclass(frozen=True, slots=True, kw_only=True)
class Infer(Shared):
    """The options of `run infer`."""

    task: str = "auto"
    prompts: tuple[str, ...] = ()
    """Prompts that were given as arguments."""
    file: str = ""
    """A file of prompts; empty where there are arguments."""
    shown: str = ""
    """How the file is called where it stands for standard input."""
    column: str = ""
    batch_size: int = 8
    max_new_tokens: int = 64
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    stream: bool = False
    text: bool = False
    """Write the texts alone instead of JSON lines."""
    pooling: str = "mean"
    normalize: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Train(Shared):
    """The options of `run train`, with the names of `TrainingArguments` where it has them."""

    task: str = "causal-lm"
    train_file: str = ""
    eval_file: str = ""
    text_column: str = ""
    label_column: str = "label"
    packing: bool = False
    output_dir: str = "out"
    resume_from_checkpoint: str = ""
    """A checkpoint, or "last" for the newest whole one in `output_dir`."""
    per_device_train_batch_size: int = 8
    per_device_eval_batch_size: int = 0
    gradient_accumulation_steps: int = 1
    learning_rate: float = 5e-5
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    lr_scheduler_type: str = "linear"
    warmup_steps: int = 0
    num_train_epochs: float = 1.0
    max_steps: int = -1
    logging_steps: int = 10
    eval_steps: int = 0
    save_steps: int = 0
    save_total_limit: int = 0
    dataloader_drop_last: bool = False
    bf16: bool = False
    torch_compile: bool = True
    gradient_checkpointing: bool = False


KINDS: dict[str, type[Infer] | type[Train]] = {"infer": Infer, "train": Train}


def words(settings: Infer | Train) -> list[str]:
    """Give the arguments from which the child reads the settings; prompts stand apart, since a word has a limit."""
    kind = "infer" if isinstance(settings, Infer) else "train"
    values = asdict(settings)
    prompts = values.pop("prompts", ())
    return [kind, json.dumps(values, ensure_ascii=False), *prompts]


def read_words(argv: Sequence[str]) -> Infer | Train:
    """Read the settings back."""
    kind, text, *prompts = argv
    cls = KINDS[kind]
    known = {field.name for field in fields(cls)}
    values = {name: value for name, value in json.loads(text).items() if name in known}
    if kind == "infer":
        values["prompts"] = tuple(prompts)
    return cls(**values)
