"""PyTorch's own record of compiling: what `TORCH_TRACE=folder` writes, one file a rank."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapeguard.core.events import Outcome
from shapeguard.importers.importer import Imported, Importer, Numbering
from shapeguard.trace.sites import Sites

_HEAD = re.compile(r"^V\d{4} [\d:.]+ \d+ \S+\] (\{.*)$")
_RANK = re.compile(r"_rank_(\d+)_")
_LOCAL = re.compile(r"^L\['(\w+)'\](.*)$")
_OPERATOR = re.compile(r"torch\.ops\.aten\.(\w+)(?:\.(\w+))?\(")
_GRAPHS = {"aot_forward_graph": "forward", "aot_backward_graph": "backward", "aot_inference_graph": "inference"}
_SIZES = ("size mismatch", "stride mismatch", "dtype mismatch")
_LONGEST = 64 * 2**20


@dataclass(slots=True)
class _Region:
    """What the log says of one compile of a code object."""

    facts: dict[str, Any] = field(default_factory=dict)
    stack: list[dict[str, Any]] = field(default_factory=list)
    graphs: list[tuple[str, str]] = field(default_factory=list)
    """Kind and text of each graph."""
    sources: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    nodes: int = 0
    reasons: list[str] = field(default_factory=list)


class TorchTrace(Importer):
    """Files of `TORCH_TRACE`."""

    name = "torch-trace"
    what = "a TORCH_TRACE log"
    has_steps = True

    def fits(self, path: Path) -> bool:
        """Tell it by the names that torch gives the files, or by the first line."""
        files = _files(path)
        if not files:
            return False
        with files[0].open(encoding="utf-8", errors="replace") as stream:
            return _HEAD.match(stream.readline(1 << 20).rstrip("\n")) is not None

    def read(self, path: Path, *, root: str) -> list[Imported]:
        """Read each file as one process."""
        files = _files(path)
        return [_Log(Sites(root)).read(file, world_size=len(files)) for file in files]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(path.glob("dedicated_log_torch_trace*.log"))


class _Log:
    """Reads one file."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._strings: dict[int, str] = {}
        self._tensors: dict[tuple[int, int], dict[str, Any]] = {}
        self._regions: dict[tuple[int, int], _Region] = {}
        self._num_unread = 0
        self._versions: dict[str, str] = {}

    def read(self, file: Path, *, world_size: int) -> Imported:
        rank = _RANK.search(file.name)
        with file.open(encoding="utf-8", errors="replace") as stream:
            for entry, payload in self._entries(stream):
                try:
                    self._take(entry, payload)
                except (KeyError, TypeError, ValueError, IndexError):
                    self._num_unread += 1
        numbering = Numbering()
        for number, region in enumerate(self._regions.values(), start=1):
            self._write(number, region, numbering)
        return Imported(
            rank=int(rank[1]) if rank else 0,
            world_size=world_size,
            device={"toolchain": self._versions},
            events=numbering.events,
            num_unread=self._num_unread,
        )

    def _entries(self, lines: Iterator[str]) -> Iterator[tuple[dict[str, Any], str]]:
        """Give each entry with the lines below it that belong to it, which begin with a tab."""
        entry: dict[str, Any] | None = None
        payload: list[str] = []
        size = 0
        for line in lines:
            if line.startswith("\t"):
                size += len(line)
                if size < _LONGEST:
                    payload.append(line[1:])
                continue
            if entry is not None:
                yield entry, "".join(payload)
            head = _HEAD.match(line.rstrip("\n"))
            entry, payload, size = None, [], 0
            try:
                entry = json.loads(head[1]) if head else None
            except ValueError:
                head = None
            self._num_unread += head is None and bool(line.strip())
        if entry is not None:
            yield entry, "".join(payload)

    def _take(self, entry: dict[str, Any], payload: str) -> None:
        if "str" in entry:
            text, number = entry["str"]
            self._strings[int(number)] = str(text)
        elif "describe_tensor" in entry:
            tensor = entry["describe_tensor"]
            self._tensors[tensor["describer_id"], tensor["id"]] = tensor
        elif "frame_id" in entry and "frame_compile_id" in entry:
            self._take_of_region(entry, payload)

    def _take_of_region(self, entry: dict[str, Any], payload: str) -> None:
        region = self._regions.setdefault((entry["frame_id"], entry["frame_compile_id"]), _Region())
        if "dynamo_start" in entry:
            # Another attempt at the same code object begins anew.
            region.stack = [self._frame(row) for row in entry["dynamo_start"]["stack"]]
            region.sources, region.graphs = [], []
        elif "describe_source" in entry:
            source = entry["describe_source"]
            region.sources.append((source["source"], self._tensors[source["describer_id"], source["id"]]))
        elif "dynamo_output_graph" in entry:
            region.nodes = len(entry["dynamo_output_graph"].get("sizes") or ())
        elif "compilation_metrics" in entry:
            region.facts = entry["compilation_metrics"]
            if version := region.facts.get("pytorch_version"):
                self._versions["torch"] = str(version)
        elif entry.get("artifact", {}).get("name") == "recompile_reasons":
            # A single reason is written as it is, several as a list.
            is_list = payload.lstrip().startswith("[")
            region.reasons = [str(each) for each in json.loads(payload)] if is_list else [payload.strip()]
        for name, kind in _GRAPHS.items():
            if name in entry:
                region.graphs.append((kind, payload))

    def _frame(self, row: dict[str, Any]) -> dict[str, Any]:
        file = self._strings.get(row["filename"], "") if isinstance(row["filename"], int) else str(row["filename"])
        return {"file": file, "line": int(row["line"]), "function": str(row["name"])}

    def _write(self, number: int, region: _Region, numbering: Numbering) -> None:
        failed = bool(region.facts.get("fail_type"))
        if not region.graphs and not failed:
            return  # nothing of it was handed to a backend
        stack = [
            {**row, "file": self._sites.name(row["file"])}
            for row in region.stack[:-1]
            if self._sites.is_users_file(row["file"])
        ]
        code = self._code(region)
        phase = "eval" if any(kind == "inference" for kind, _ in region.graphs) else "train"
        where = {"stack": stack, "site": stack[-1]} if stack else {"stack": []}
        function = f"{code['file']}:{code['line']}:{code['function']}"
        numbering.begin(function, phase)
        seconds = region.facts.get("backend_compile_time_s")
        numbering.compile(
            phase,
            function=function,
            kind="region",
            region=number,
            key=f"region {number}",
            outcome=Outcome.FAILED if failed else Outcome.COMPILED,
            code=code,
            inputs=self._inputs(region),
            guard=self._guard(region.reasons),
            modes={},
            nodes=region.nodes,
            **({"seconds": seconds} if isinstance(seconds, (int, float)) else {}),
            **where,
        )
        for kind, text in region.graphs:
            numbering.compile(phase, function=function, region=number, **_graph(kind, text), **where)

    def _code(self, region: _Region) -> dict[str, Any]:
        last: dict[str, Any] = region.stack[-1] if region.stack else {"file": "", "line": 0, "function": ""}
        file = str(region.facts.get("co_filename") or last["file"])
        return {
            "file": self._sites.name(file) if file else "",
            "line": int(region.facts.get("co_firstlineno") or last["line"]),
            "function": str(region.facts.get("co_name") or last["function"]),
        }

    def _inputs(self, region: _Region) -> list[dict[str, Any]]:
        rows = []
        for source, tensor in region.sources:
            if "_parameters[" in source or "_buffers[" in source or tensor.get("is_parameter"):
                continue
            match = _LOCAL.match(source)
            rows.append(
                {
                    "path": f"{match[1]}{match[2]}" if match else source,
                    "shape": [size if isinstance(size, int) else str(size) for size in tensor["size"]],
                    "dtype": str(tensor["dtype"]).removeprefix("torch."),
                    "layout": "",
                    "requires_grad": bool(tensor.get("requires_grad")),
                }
            )
        return rows

    @staticmethod
    def _guard(reasons: list[str]) -> str:
        """Give the guard that failed, without the source line that torch may add: as the tracer chooses it."""
        kept = [reason.split("  #")[0].strip() for reason in reasons]
        others = [reason for reason in kept if not any(word in reason for word in _SIZES)]
        return (others or kept or [""])[0]


def _graph(kind: str, text: str) -> dict[str, Any]:
    """Describe a graph by its text: comments hold source lines and stay out, of the key too."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    body = [line for line in lines if line]
    operators = Counter(
        name if variant in ("default", "") else f"{name}.{variant}"
        for line in body
        for name, variant in _OPERATOR.findall(line)
    )
    return {
        "kind": kind,
        "key": hashlib.sha256("\n".join(body).encode()).hexdigest(),
        "name": "",
        "outcome": Outcome.COMPILED,
        "nodes": sum("=" in line for line in body),
        "operators": dict(operators),
        "collectives": sum("_c10d_functional" in line for line in body),
    }
