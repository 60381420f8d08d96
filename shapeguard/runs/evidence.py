"""What the figures of a run rest on, in words: simulated, or measured on a device, and by which of its readers."""

from __future__ import annotations

from collections.abc import Mapping

SIMULATED = "Simulated: counted on this machine after what is known of TorchNeuron, never run on Trainium."
_FACTS = ("eager", "graphs", "outcomes", "seconds", "names", "host_operators")


def basis(device: Mapping[str, object]) -> str:
    """Give the paragraph that says it; `device` is what the run's `start` and `device` lines say."""
    if device.get("kind") == "imported":
        return f"Imported from {device.get('source') or 'a log'}: only what stands there is counted."
    if device.get("kind") != "real":
        return SIMULATED
    toolchain = device.get("toolchain")
    version = str(toolchain.get("torch-neuronx") or "") if isinstance(toolchain, Mapping) else ""
    what = ", ".join(filter(None, (f"torch_neuronx {version}".strip(), str(device.get("mode") or ""))))
    lines = [f"Measured on the device ({what}). The adapter was never tried on Trainium: see docs/hardware.md."]
    evidence = device.get("evidence")
    if not isinstance(evidence, Mapping):
        return "\n".join([*lines, "  evidence: not recorded; torch_neuronx was not seen"])
    lines += [f"  {name.replace('_', ' ')}: {evidence[name]}" for name in _FACTS if evidence.get(name)]
    if evidence.get("missing"):
        lines.append(f"  missing in this torch_neuronx: {', '.join(str(evidence['missing']).split())}")
    return "\n".join(lines)
