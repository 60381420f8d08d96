"""The lines of an event file: facts that one process wrote down while it ran.

One file a process, `rank-R.pid-P.jsonl`, append-only, one JSON object a line; a torn last line is tolerated. Lines hold
facts only: no source text, no tensor values. Every line has `type`, `step` (0 before the first step) and `phase`
("train", "eval", "generate"), and may have `phase_step`, the number of the step in its phase; times are in seconds
since the start of the process and never part of a comparison.

`start`     schema, rank, world_size, pid, program (argv of the user), cwd, warmup_steps, device {kind, target, inner,
            num_devices, flags (of the compiler), toolchain {python, torch, transformers, shapeguard}}; optional: forked
            (true in a forked child)
`compile`   n (counts from 1 in the process), kind, outcome, key; optional: config (digest of the model's
            configuration), tp (size of its tensor parallelism), seconds (what the compiler took), neff (the key of
            the compiled file, where there is a folder of them); and by kind:
  region        what Dynamo handed to the backend: region (id, from 1), code {file, line, function} of the compiled
                code object, inputs, constants, guard, modes {grad, inference, training, autocast}, model, nodes;
                optional: instance (which `torch.compile` call made it, from 1: two models of one class are two).
                outcome is "compiled", "shared" (every graph of it was known), "failed", or "eager-after-limit" (Dynamo
                gave up on the code object: from here it runs eagerly; `limit` says at how many)
  forward, backward, inference
                one graph after AOTAutograd: region it belongs to, name, inputs, nodes, operators {name: how often},
                collectives (number of collectives in it), key; outcome "compiled", "disk", "shared" (its key known),
                "failed"; optional: outline (a digest that leaves out constants), exchange (digest of its collectives),
                dtypes [text] of all tensors in it, certainty (as below)
  eager         one new key of an eager operator: op (overload name without "aten::"), inputs, constants,
                certainty ("" or "±": the count rests on a guess about Neuron); optional: instance (which model's
                forward runs or ran last, from 1)
  collective    the same for an eager collective
`outcome`   how an earlier compile ended, where that was not known when it was asked for (on hardware): n (of its
            compile line), outcome; optional: seconds, name (of the graph), neuron (TorchNeuron's own key), neff
`device`    what only a later moment tells of the device: device {target, num_devices, mode, evidence {what each kind
            of fact rests on}}; takes the place of what `start` says, name by name
`step`      a step begins; `step` is its number from 1
`forward`   a top-level forward with inputs whose shapes are new, written on one of several ranks: model, shapes {name:
            shape}, site
`fallback`  op, calls, bytes (both directions), site: totals so far, the last line of an op wins
`placement` a model's forward ran on the CPU while a Neuron device is there: model, device, site (of the forward),
            loaded {file, line} (of the line that loaded or moved it so, or null), how ("device_map=auto", "pipeline",
            "default")
`batch`     a batch was collated: real and padded tokens, shapes {name: shape}, site of the collator, loader (site of
            the line that made the loader), last (whether the loader's last, short one)
            optional: rows (the length of each row before it was padded)
`break`     Dynamo ends a graph within a code object: reason (its kind, as Dynamo says), site (the line that breaks),
            code (the code object compiled in pieces), resumes (its line that the next piece is named after),
            is_loop (in a loop: then nothing of the code object is compiled)
`problem`   message, code: what could not be recorded, or what a reader must know ("value-read": the program read a
            value that the meta device does not have)
`end`       exit ("ok", "exception", "steps", "signal"), steps

`inputs`     [{path, shape, dtype, layout}]: path as the user would write it ("input_ids", "past_key_values[0].keys",
             "0"); layout "" for contiguous, else "permuted (…)", "slice (…)", "expanded", "strided". Optional, on a
             region's inputs: device (where it is not the Neuron device) and requires_grad
`constants`  [{path, value}]: what is baked into the graph by value, as text
`site`       {file, line, function}: the user's line, innermost frame outside torch, transformers, accelerate, the
             standard library and shapeguard; absent when there is none
`stack`      [{file, line, function}], outermost first, only the user's frames
`owners`     [{role, file, line, function}] lines that own the shape: role "move" (`.to(device)`), "collate",
             "tokenize", "loader", "dynamic" (marks a size dynamic); a move has `path`, the input it brought,
             a tokenizer's call `size`, the length it gave
Files are relative to the folder the program was started in, where they lie below it; others keep only their last two
parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

SCHEMA = 1
"""Version of the event lines and of `summary.json`."""

REGION_KINDS = ("forward", "backward", "inference")


class Outcome(StrEnum):
    """How a compile ended."""

    COMPILED = "compiled"
    DISK = "disk"
    SHARED = "shared"
    FAILED = "failed"
    LIMIT = "eager-after-limit"


class Sink(Protocol):
    """What takes event lines: the recorder in a traced process, a list in a test."""

    def emit(self, event: Mapping[str, Any]) -> int | None:
        """Take one event; must not raise into the traced program. May give its number among the compile lines."""

    def site(self) -> Mapping[str, Any] | None:
        """Give the user's line that runs now."""

    def region_begins(self, is_training: bool | None) -> None:
        """A compiled region is about to run, in training or not; None: it is about to be compiled."""


def line(event: Mapping[str, Any]) -> str:
    """Give one line of an event file, with its newline; keys sorted, so that equal events are equal bytes."""
    return json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
