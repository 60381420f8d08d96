"""What `torch.neuron` and `torch_neuronx` offer (facts, sections 3.4 and 4)."""

from __future__ import annotations

import json

from tests.neuron.conftest import RunOnDevice

DEVICE = """
import json, torch, torch_neuronx, importlib.metadata, importlib.util
import torch.neuron
x = torch.ones(4, device="neuron:0")
names = '''is_initialized is_available init device_count current_device set_device device get_device_name
    get_device_properties get_amp_supported_dtype is_bf16_supported _is_in_bad_fork manual_seed manual_seed_all seed
    seed_all initial_seed get_rng_state set_rng_state Stream Event stream current_stream default_stream set_stream
    synchronize wait_stream wait_event record_event query memory memory_stats memory_allocated max_memory_allocated
    memory_reserved max_memory_reserved reset_peak_memory_stats reset_accumulated_memory_stats memory_summary
    empty_cache _sleep get_dynamo_metrics reset_dynamo_metrics'''.split()
package = '''Stream Event StreamContext device stream current_stream default_stream set_stream synchronize device_count
    current_device set_device get_device_properties empty_cache memory_stats memory_allocated get_fallback_ops
    get_executed_ops clear_op_tracking get_dynamo_metrics reset_dynamo_metrics is_neuron_runtime_initialized _lazy_init
    _autoload neuron __version__'''.split()
print(json.dumps({
    "missing": [n for n in names if not hasattr(torch.neuron, n)] + [n for n in package if not hasattr(torch_neuronx, n)],
    "available": torch.neuron.is_available(), "accelerator": str(torch.accelerator.current_accelerator()),
    "count": torch.neuron.device_count(), "name": torch.neuron.get_device_name(),
    "properties": torch.neuron.get_device_properties().name, "device": str(x.device), "method": str(torch.ones(1).neuron().device),
    "is": x.is_neuron, "spec": importlib.util.find_spec("torch_neuronx") is not None,
    "version": importlib.metadata.version("torch-neuronx"), "allocated": torch.neuron.memory_allocated(),
    "stats": torch_neuronx.memory_stats()["allocated_bytes"]["current"],
    "float64": [str(d) for d in torch.neuron.get_amp_supported_dtype()],
}))
"""


def test_the_module_has_the_names_that_torchneuron_gives_it(on_device: RunOnDevice) -> None:
    printed, _ = on_device(DEVICE)
    found = json.loads(printed)
    assert found["missing"] == []
    assert (found["available"], found["accelerator"], found["count"]) == (True, "neuron", 1)
    assert (found["name"], found["properties"], found["device"]) == ("neuron:0", "trn2", "neuron:0")
    assert (found["method"], found["is"], found["spec"]) == ("neuron:0", True, True)
    assert found["allocated"] == found["stats"] == 16
    assert found["version"].startswith("2.14")


# The outside checks 8, 9, 11 and 12 of the facts, section 6.
METRICS = """
import json, torch
from torch import nn
from torch._dynamo.utils import counters
one = torch.compile(nn.Linear(10, 5).to("neuron"), backend="neuron")
two = torch.compile(nn.Linear(10, 7).to("neuron"), backend="neuron", options={"model_name": "named"})
x = torch.ones(2, 10).to("neuron")
with torch.no_grad():
    one(x), two(x), one(x)
records = torch.neuron.get_dynamo_metrics()
print(json.dumps([[r.graph_name, r.model_name, r.graph_node_count, r.has_collectives] for r in records]))
print(counters["neuron"]["compiled_graphs"])
first, second = nn.Linear(4, 4).to("neuron"), nn.Linear(4, 4).to("neuron")
def broken(x):
    x = first(x)
    torch._dynamo.graph_break()
    return second(x)
torch.neuron.reset_dynamo_metrics()
with torch.no_grad():
    torch.compile(broken, backend="neuron")(torch.ones(1, 4).to("neuron"))
print(len({r.graph_name for r in torch.neuron.get_dynamo_metrics()}))
"""


def test_compiled_graphs_have_a_record_each(on_device: RunOnDevice) -> None:
    printed, events = on_device(METRICS)
    records, count, broken = printed.splitlines()
    names = [row[0] for row in json.loads(records)]
    assert names == ["model_default_1_inference_1", "named_2_inference_2"]
    assert all(nodes > 0 and not collective for _, _, nodes, collective in json.loads(records))
    assert (count, broken) == ("2", "2")
    graphs = [event for event in events if event.get("kind") == "inference"]
    # The two halves around the break are the same program: one NEFF, shared.
    assert [graph["outcome"] for graph in graphs] == ["compiled", "compiled", "compiled", "shared"]


def test_operators_are_named_and_forgotten(on_device: RunOnDevice) -> None:
    program = (
        "import torch, torch_neuronx\n"
        "x = torch.ones(4).to('neuron')\n"
        "x + x, x.argmax()\n"
        "print(torch_neuronx.get_executed_ops(), torch_neuronx.get_fallback_ops())\n"
        "torch_neuronx.clear_op_tracking()\n"
        "print(torch_neuronx.get_executed_ops())\n"
    )
    printed, _ = on_device(program)
    assert printed == "['aten::add.Tensor'] ['aten::argmax.out']\n[]\n"


def test_settings_of_compiling_that_neuron_ignores_are_said(on_device: RunOnDevice) -> None:
    program = (
        "import torch\n"
        "double = torch.compile(lambda x: x * 2, backend='neuron', mode='max-autotune')\n"
        "print(double(torch.ones(3).to('neuron')).tolist())\n"
        "plain = torch.compile(lambda x: x * 3)\n"
        "print(plain(torch.ones(3).to('neuron')).tolist())\n"
    )
    printed, events = on_device(program)
    assert printed == "[2.0, 2.0, 2.0]\n[3.0, 3.0, 3.0]\n"
    assert sum(event.get("kind") == "region" for event in events) == 2
