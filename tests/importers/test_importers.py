"""`shapeguard import`: runs out of what other tools wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Shapeguard

PROGRAM = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, ids, scale):
        return (self.first(ids) * scale).relu().sum()


net = Net()
compiled = torch.compile(net, backend="aot_eager", dynamic=False)
for length in (3, 5, 5, 8):
    compiled(torch.randn(length, 4), 2.0).backward()
with torch.no_grad():
    compiled(torch.randn(5, 4), 2.0)
"""


@pytest.fixture(scope="module")
def torch_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of logs of a ragged run, made by torch itself."""
    folder = tmp_path_factory.mktemp("torch-trace")
    (folder / "ragged.py").write_text(PROGRAM)
    env = {**os.environ, "TORCH_TRACE": str(folder / "log"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "ragged.py"], cwd=folder, env=env, check=True, timeout=300)
    return folder


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(run.glob("rank-*.jsonl")) for line in path.read_text().splitlines()]


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return found


def test_a_ragged_run_of_torch_is_read_with_its_shapes_guards_and_lines(
    shapeguard: Shapeguard, torch_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(torch_trace)
    ran = shapeguard("import", "log", "--run-dir", "run")
    assert ran.code == 0, ran.err
    assert "ids dim 0 = 3, 5, 8: 3 batch sizes" in ran.out
    assert "ragged.py:17" in ran.out
    assert "Imported from a TORCH_TRACE log: only what stands there is counted." in ran.out
    found = summary(Path("run"))
    assert found["totals"]["regions"] == 4
    assert found["totals"]["aot_graphs"] == {"forward": 3, "backward": 3, "inference": 1}
    assert found["device"]["toolchain"]["torch"].startswith("2.")
    regions = [row for row in events(Path("run")) if row.get("kind") == "region"]
    assert [row["inputs"][0]["shape"] for row in regions] == [[3, 4], [5, 4], [8, 4], [5, 4]]
    assert "size mismatch at index 0. expected 3, actual 5" in regions[1]["guard"]
    assert all(row["seconds"] > 0 for row in regions)
    forward = next(row for row in events(Path("run")) if row.get("kind") == "forward")
    assert forward["operators"]["relu"] == 1


def test_no_source_text_and_no_path_of_the_log_reaches_the_run(
    shapeguard: Shapeguard, torch_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(torch_trace)
    shapeguard("import", "log", "--run-dir", "other")
    text = "".join(json.dumps(row) for row in events(Path("other")))
    assert "self.first(ids)" not in text
    assert str(torch_trace) not in text


def test_a_cut_off_log_is_read_as_far_as_it_goes_and_said(
    shapeguard: Shapeguard, torch_trace: Path, tmp_path: Path
) -> None:
    (log,) = (torch_trace / "log").glob("*.log")
    text = log.read_text()
    place = text.index('"compilation_metrics": {"compile_id": "0/1"')
    (tmp_path / "cut.log").write_text(text[: place + 200])
    ran = shapeguard("import", "cut.log", "--run-dir", "run")
    assert ran.code == 0, ran.err
    assert summary(tmp_path / "run")["totals"]["regions"] == 2
    assert "1 lines of it could not be read and are left out" in ran.out + ran.err


COLUMNS = (
    "graph_id,graph_name,model_name,has_collectives,graph_node_count,timestamp,torch_neuronx_fx_passes_us,"
    "torch_neuronx_lower_us,torch_neuronx_compile_us"
)
TABLE = f"""{COLUMNS}
{"a" * 64}_trn2_2_O2,model_default_0_forward_0,model_default,False,12,1.0,5,6,2500000
{"b" * 64}_trn2_2_O2,model_default_0_backward_1,model_default,False,20,2.0,5,6,3000000
{"c" * 64}_trn2_2_O2,llama_1_inference_2,llama,True,30,3.0,5,6,0
{"a" * 64}_trn2_2_O2,model_default_2_forward_3,model_default,False,12,4.0,5,6,0
broken
"""


def test_the_table_of_torchneuron_is_read_a_file_a_rank(shapeguard: Shapeguard, tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"metric_table_graph_stats_rank{rank}.csv").write_text(TABLE)
    ran = shapeguard("import", ".", "--run-dir", "run")
    assert ran.code == 0, ran.err
    found = summary(tmp_path / "run")
    assert [row["rank"] for row in found["ranks"]] == [0, 1]
    assert found["totals"]["regions"] == 3
    graphs = [row for row in events(tmp_path / "run") if row.get("kind") in ("forward", "backward", "inference")]
    assert [row["outcome"] for row in graphs[:4]] == ["compiled", "compiled", "disk", "shared"]
    assert graphs[0]["seconds"] == 2.5
    assert "tells neither steps nor functions" in ran.out + ran.err


XLA_LOG = Path(__file__).parent / "data" / "xla.log"


def test_a_log_of_the_xla_stack_tells_compiled_failed_and_cached(shapeguard: Shapeguard, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(XLA_LOG.read_text())
    ran = shapeguard("import", "job.log", "--run-dir", "run")
    assert ran.code == 0, ran.err
    graphs = {row["name"]: row for row in events(tmp_path / "run") if row.get("kind") == "inference"}
    assert {name: row["outcome"] for name, row in graphs.items()} == {
        "MODULE_165+d41d8cd9": "compiled",
        "MODULE_166+d41d8cd9": "failed",
        "MODULE_fefb+ede6753c": "disk",
    }
    assert graphs["MODULE_166+d41d8cd9"]["seconds"] == 42.0
    device = summary(tmp_path / "run")["device"]
    assert device["target"] == "trn1"
    assert device["toolchain"]["neuronx-cc"] == "2.13.72.0+78a426937"


def test_a_cache_folder_of_the_xla_stack_is_read_a_process_a_compiler(shapeguard: Shapeguard, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    entry(cache / "neuronxcc-2.20.1+aa" / "MODULE_1+ff", "model.neff", "model.done", size=4096)
    entry(cache / "neuronxcc-2.21.1+bb" / "MODULE_2+ff", "model.neff", "model.done", size=4096)
    entry(cache / "neuronxcc-2.21.1+bb" / "MODULE_3+ff", "model.log")
    entry(cache / "neuronxcc-2.21.1+bb" / "MODULE_4+ff", "model.hlo_module.pb.lock")
    entry(cache / "neuronxcc-2.21.1+bb" / "stray", "model.neff", size=4096)
    ran = shapeguard("import", "cache", "--run-dir", "run")
    assert ran.code == 0, ran.err
    found = [row for row in events(tmp_path / "run") if row.get("kind") == "inference"]
    assert sorted((row["name"], row["outcome"]) for row in found) == [
        ("MODULE_1+ff", "compiled"),
        ("MODULE_2+ff", "compiled"),
        ("MODULE_3+ff", "failed"),
    ]


def entry(folder: Path, *names: str, size: int = 0) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"\0" * (size if name == "model.neff" else 0))


@pytest.mark.parametrize("make", ["text", "empty folder", "nothing"])
def test_what_is_no_log_is_refused_with_the_kinds_that_are(make: str, shapeguard: Shapeguard, tmp_path: Path) -> None:
    path = tmp_path / "thing"
    if make == "text":
        path.write_text("hello\n")
    elif make == "empty folder":
        path.mkdir()
    ran = shapeguard("import", "thing")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ("there is no thing" if make == "nothing" else "is none of the logs that can be read") in ran.err


@pytest.mark.parametrize("kind", ["graph-stats", "torch-trace", "xla-cache", "xla-log"])
def test_a_wrong_kind_is_an_error_and_no_crash(kind: str, shapeguard: Shapeguard, tmp_path: Path) -> None:
    (tmp_path / "thing.csv").write_bytes(b"\xff\x00 nonsense, \n" * 3)
    (tmp_path / "folder").mkdir()
    for path in ("thing.csv", "folder"):
        ran = shapeguard("import", path, "--kind", kind)
        assert ran.code == 2
        assert "bug in shapeguard" not in ran.err
