"""What sort of object an expression is: a decoder, a tokenizer, something of another library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow
    from shapeguard.lint.flow.values import Value

NOTHING: frozenset[str] = frozenset()
MODELS = frozenset({"decoder", "encoder-decoder", "vision", "model", "local-model"})

_HUGGING_FACE = frozenset({"transformers", "peft", "trl"})
_MADE_BY = frozenset({"from_pretrained", "from_config", "_from_config"})
_ENCODER_DECODER = re.compile(
    r"Seq2Seq|Encoder-?Decoder|^M?T5|^UMT5|^LongT5|^MBart|^Bart|^PLBart|Whisper|Pegasus|Marian|M2M100|Blenderbot|^LED|"
    r"ProphetNet|SwitchTransformers|Speech2Text|SeamlessM4T|Nllb|Moonshine|Florence|Pix2Struct|VisionEncoder|"
    r"Donut|Nougat|MusicgenFor|Bark|SpeechT5|BigBirdPegasus|^FSMT|^Kosmos2?_?5|TextToWaveform|TextToSpectrogram"
)
_VISION = re.compile(
    r"VL|Llava|ImageTextToText|Vision2Seq|Idefics|PaliGemma|Mllama|Blip|Fuyu|Multimodal|Ovis|Vision|Audio|Omni|Pixtral|ForConditionalGeneration"
)
SAME = frozenset(
    [
        "eval",
        "to",
        "half",
        "bfloat16",
        "float",
        "cuda",
        "cpu",
        "train",
        "requires_grad_",
        "merge_and_unload",
        "to_bettertransformer",
        "neuron",
        "type",
    ]
)
_AROUND = frozenset(
    [
        "compile",
        "get_peft_model",
        "prepare",
        "prepare_model",
        "unwrap_model",
        "prepare_model_for_kbit_training",
        "DataParallel",
        "DistributedDataParallel",
        "init_inference",
        "optimize",
        "FullyShardedDataParallel",
    ]
)
_BUILTIN_CONTAINERS = frozenset({"dict", "list", "set", "tuple", "str", "int", "open", "range", "zip"})


def kinds(flow: Flow, node: cst.CSTNode) -> frozenset[str]:
    """Give what sorts of object the expression may be."""
    found = [kind for value in flow.values(node) if (kind := _kind(flow, value))]
    if isinstance(node, (cst.Attribute, cst.Name)) and set(found) <= {"made"}:
        # What a function of another file made is known by its name only.
        found = [_by_name(path_of(node)) or each for each in found or [""]]
    return frozenset(kind for kind in found if kind)


def _kind(flow: Flow, value: Value) -> str:
    if value.kind == "call" and isinstance(value.node, cst.Call):
        return _made(flow, value.node)
    if value.kind == "parameter" and isinstance(value.node, cst.Param):
        return _parameter(flow, value.node)
    if value.kind == "attribute" and isinstance(value.node, cst.Attribute):
        return _attribute(flow, value.node)
    if value.kind == "class":
        return "local"
    if value.kind in ("function", "constant", "dict", "sequence"):
        return value.kind
    return ""


def _attribute(flow: Flow, node: cst.Attribute) -> str:
    owner = flow.kinds(node.value)
    if node.attr.value == "tokenizer" and owner & {"processor", "pipeline"}:
        return "tokenizer"
    if node.attr.value in ("module", "base_model", "_orig_mod", "model") and owner & MODELS:
        return next(iter(owner & MODELS))
    return _by_name(path_of(node))


def _made(flow: Flow, node: cst.Call) -> str:
    last = method(node)
    names = flow.names(node.func)
    if isinstance(node.func, cst.Attribute) and last in SAME:
        return next(iter(sorted(flow.kinds(node.func.value))), "")
    if last in _AROUND and node.args and len([arg for arg in node.args if arg.keyword is None]) == 1:
        return next(iter(sorted(flow.kinds(node.args[0].value))), "")
    if isinstance(node.func, cst.Name) and node.func.value == "cls":
        owner = flow.index.scope[node].owner()
        return _local(flow, owner.node) if owner is not None and isinstance(owner.node, cst.ClassDef) else ""
    maker = node.func.value if isinstance(node.func, cst.Attribute) and last in _MADE_BY else node.func
    for value in flow.values(maker):
        if value.kind == "class" and isinstance(value.node, cst.ClassDef):
            return _local(flow, value.node)
    return _of_library(flow, node, sorted(names)[0].split(".")) if names else ""


def _of_library(flow: Flow, node: cst.Call, parts: list[str]) -> str:
    """Give the sort of what a call of the qualified name makes."""
    last = method(node)
    if last in _MADE_BY:
        parts = parts[:-1]
    if parts[0] in ("peft", "trl") and last in _MADE_BY and node.args and flow.kinds(node.args[0].value) & MODELS:
        return next(iter(flow.kinds(node.args[0].value) & MODELS))
    if parts[0] in _HUGGING_FACE or parts[0].startswith("."):
        return classify(parts[-1])
    if parts[-1] in ("getattr", "super", "globals", "next", "eval", "load"):
        return ""
    is_function = isinstance(node.func, cst.Name) and len(parts) > 1 and parts[-1].islower()
    return "made" if is_function else "foreign"


def classify(name: str) -> str:
    """Give the sort of a class of transformers, by its name."""
    if name.endswith(("Tokenizer", "TokenizerFast")):
        return "tokenizer"
    if name.endswith(("Processor", "FeatureExtractor")):
        return "processor"
    if name.endswith(("Config", "Arguments")):
        return "config"
    if name == "pipeline" or name.endswith("Pipeline"):
        return "pipeline"
    if name in ("PreTrainedModel", "AutoModel", "GenerationMixin"):
        return "model"
    if _ENCODER_DECODER.search(name):
        return "encoder-decoder"
    if name.endswith(("CausalLM", "LMHeadModel")):
        return "decoder"
    if _VISION.search(name):
        return "vision"
    return "model" if "Model" in name or "For" in name else ""


def _local(flow: Flow, node: cst.ClassDef) -> str:
    """A class of the file: what it inherits from transformers, or its own thing."""
    if "generate" in flow.index.inner[node].bindings:
        return "local"
    for base in node.bases:
        for value in flow.values(base.value):
            if isinstance(value.node, cst.ClassDef) and value.node is not node:
                return _local(flow, value.node)
        for name in flow.names(base.value):
            if name.split(".")[0] in _HUGGING_FACE and (kind := classify(name.split(".")[-1])):
                return kind
            if name.split(".")[-1] in ("Module", "LightningModule"):
                return "local-model"
    return "local"


def _parameter(flow: Flow, param: cst.Param) -> str:
    if param.annotation is not None:
        names = flow.names(param.annotation.annotation)
        for parts in (name.split(".") for name in sorted(names)):
            if parts[0] in _HUGGING_FACE and (kind := classify(parts[-1])):
                return kind
            if parts[0] not in ("typing", "torch", "Any") and len(parts) > 1 and not parts[0].startswith("."):
                return "foreign"
            if parts[0] in _BUILTIN_CONTAINERS:
                return "constant"
        for value in flow.values(param.annotation.annotation):
            if value.kind == "class":
                return "local"
    if flow.is_passed(param):
        return ""
    return _by_name(param.name.value)


def _by_name(path: str) -> str:
    """Guess from the name; the question mark says that it is a guess."""
    last = path.split(".")[-1].lower().strip("_")
    if last in ("tokenizer", "tok", "tokeniser") or last.endswith("_tokenizer"):
        return "tokenizer?"
    if last in ("processor", "feature_extractor") or last.endswith("_processor"):
        return "processor?"
    if last in ("model", "lm", "base_model", "causal_lm") or last.endswith("_model"):
        return "model?"
    return ""
