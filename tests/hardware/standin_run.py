"""Runs a program on the simulated device, and on the stand-in for torch_neuronx as if it were hardware."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STANDIN = Path(__file__).parent / "standin"
SMALL = Path(__file__).parent / "programs" / "small.py"
READERS = (
    "_C._submit_xla_task_to_pipeline",
    "_C.compile_graph",
    "_C._get_compilation_cache_entries",
    "_C._get_compilation_cache_stats",
    "_C._get_all_cache_keys",
    "_C.get_neff_info",
    "get_dynamo_metrics",
    "get_fallback_ops",
    "get_executed_ops",
    "metrics.get_counter_value",
)
"""What can be missing in a release, in async mode."""
SUBMIT, METRICS = READERS[0], "get_dynamo_metrics"


def run(folder: Path, program: Path, device: str, *, code: int = 0, **environ: str) -> tuple[Path, str]:
    """Trace a program that ends with `code`; gives its run folder and its report."""
    folder.mkdir(parents=True)
    root = folder / "root"
    (root / "dev").mkdir(parents=True)
    (root / "dev" / "neuron0").touch()
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "SHAPEGUARD_NO_CACHE": "1"}
    env |= {"SHAPEGUARD_SYSTEM_ROOT": str(root), "PYTHONPATH": str(STANDIN) if device == "neuron" else "", **environ}
    command = [sys.executable, "-m", "shapeguard", "trace", "--device", device, "--run-dir", str(folder / "run")]
    done = subprocess.run(
        [*command, str(program)], cwd=program.parent, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == code, done.stderr[-3000:]
    return folder / "run", done.stderr
