"""Run every check and say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast

from shapeguard.core.errors import Exit
from shapeguard.core.plugins import load
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.doctor import checks
from shapeguard.doctor.check import Check, Level, Notice
from shapeguard.doctor.machine import Folder, Machine
from shapeguard.doctor.places import folders, xla_url
from shapeguard.doctor.variables import PREFIXES, RUNTIME, readers

SCHEMA = 1


def notices(machine: Machine) -> list[Notice]:
    """Give what all checks find, the worst first."""
    load(checks)
    found = [
        replace(notice, check=name) for name, check in sorted(Check.known.items()) for notice in check().look(machine)
    ]
    return sorted(found, key=lambda notice: list(Level).index(notice.level), reverse=True)


def examine(machine: Machine) -> Report:
    """Give the report; exit 1 where something should be mended."""
    found = notices(machine)
    wrong = [notice for notice in found if notice.level is not Level.NOTE]
    seen = folders(machine)
    return Report(
        tool="doctor",
        sections=tuple(_sections(machine, seen, found, len(wrong))),
        document=cast(Mapping[str, JSON], _document(machine, seen, found)),
        is_listing=True,
        rows=tuple(cast(JSON, _plain(notice)) for notice in found),
        exit_code=Exit.FINDINGS if wrong else Exit.CLEAN,
    )


def _sections(machine: Machine, seen: Sequence[Folder], found: Sequence[Notice], wrong: int) -> list[Text | Table]:
    sections: list[Text | Table] = [Text(text=_verdict(machine, wrong), strong=True)]
    sections += [Text(text=_words(notice)) for notice in found]
    rows = tuple((each.name, each.version, each.location) for each in machine.packages)
    sections.append(Table(title="Installed", columns=("package", "version", "where"), rows=rows))
    sections.append(
        Table(title="Compiled files", columns=("read by", "folder", "set by"), rows=tuple(_places(machine, seen)))
    )
    rows = tuple((name, machine.environ[name], reader) for name, reader in _variables(machine).items())
    sections.append(Table(title="Variables", columns=("variable", "value", "read by"), rows=rows))
    return [each for each in sections if not isinstance(each, Table) or each.rows]


def _verdict(machine: Machine, wrong: int) -> str:
    if not wrong:
        return f"nothing to mend: {_what(machine)}"
    return f"{wrong} thing{'s' if wrong > 1 else ''} to mend: {_what(machine)}"


def _what(machine: Machine) -> str:
    neuron = machine.package("torch-neuronx")
    devices = f"{len(machine.devices)} Neuron devices" if machine.devices else "no Neuron device"
    if "native" in machine.stacks and neuron is not None:
        return f"TorchNeuron {neuron.version} (native), {devices}"
    if "xla" in machine.stacks:
        return f"the torch_xla stack, {devices}"
    return f"no Neuron stack, {devices}; programs are traced on the simulated device"


def _words(notice: Notice) -> str:
    hint = f"\n  → {notice.hint}" if notice.hint else ""
    return f"{notice.level}: {notice.message}{hint}"


def _places(machine: Machine, seen: Sequence[Folder]) -> list[tuple[str, str, str]]:
    rows = [(each.layer, str(each.path), each.origin) for each in seen]
    if "xla" in machine.stacks and not any(each.layer == "torch_xla stack" for each in seen):
        rows.append(("torch_xla stack", *xla_url(machine)))
    if "native" in machine.stacks and machine.value("TORCH_NEURONX_NEFF_DISABLE_CACHE") == "1":
        rows.append(("TorchNeuron", "none", "TORCH_NEURONX_NEFF_DISABLE_CACHE=1"))
    return rows


def _variables(machine: Machine) -> dict[str, str]:
    found = {}
    for name in sorted(machine.environ):
        if name.startswith(PREFIXES):
            here = readers(name) & (machine.stacks | {RUNTIME})
            found[name] = ", ".join(sorted(here)) or "nobody here"
    return found


def _document(machine: Machine, seen: Sequence[Folder], found: Sequence[Notice]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "stacks": sorted(machine.stacks),
        "devices": list(machine.devices),
        "driver": machine.driver,
        "packages": [asdict(each) for each in machine.packages],
        "folders": [{"layer": a, "folder": b, "set_by": c} for a, b, c in _places(machine, seen)],
        "variables": _variables(machine),
        "notices": [_plain(notice) for notice in found],
    }


def _plain(notice: Notice) -> dict[str, str]:
    return {
        "check": notice.check,
        "level": str(notice.level),
        "subject": notice.subject,
        "message": notice.message,
        "hint": notice.hint,
    }
