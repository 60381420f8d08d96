"""Push, pull, export and import as reports."""

from __future__ import annotations

from shapeguard.cache.pull import PullPlan
from shapeguard.cache.push import PushPlan
from shapeguard.cache.view import SCHEMA, counted, size
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Text

_SHOWN = 10


def pushed(plan: PushPlan, where: str, *, dry_run: bool, verbs: tuple[str, str] = ("send", "sent")) -> Report:
    """Give what was sent, or would be; `verbs` is what that is called."""
    num_neffs = sum(not isinstance(upload.source, bytes) for upload in plan.uploads)
    num_records = len(plan.uploads) - num_neffs
    would = f"would {verbs[0]}" if dry_run else verbs[1]
    text = (
        f"{would} {counted(num_records, 'record')} and {counted(num_neffs, 'NEFF')}, {size(plan.num_bytes)}, to {where}"
    )
    if plan.num_there:
        text += f"; {plan.num_there} were there already"
    manifests: list[JSON] = [each.name for each in plan.manifests]
    return Report(
        tool="cache",
        sections=(Text(text=text),),
        document={
            "schema": SCHEMA,
            "dry_run": dry_run,
            "records": num_records,
            "neffs": num_neffs,
            "bytes": plan.num_bytes,
            "there_already": plan.num_there,
            "manifests": manifests,
        },
    )


def pulled(
    plan: PullPlan, where: str, *, num_new: int, dry_run: bool, verbs: tuple[str, str] = ("fetch", "fetched")
) -> Report:
    """Give what was fetched, or would be, and what a lock names and the remote lacks."""
    would = f"would {verbs[0]}" if dry_run else verbs[1]
    records, neffs = counted(len(plan.entries), "record"), counted(plan.num_neffs, "NEFF")
    text = f"{would} {records} and {neffs}, {size(plan.num_bytes)}, from {where}"
    if plan.num_here:
        text += f"; {plan.num_here} were here already"
    sections = [Text(text=text)]
    if plan.missing:
        some = ", ".join(key[:12] for key in sorted(plan.missing)[:_SHOWN])
        what = "1 graph of the lock is" if len(plan.missing) == 1 else f"{len(plan.missing):,} graphs of the lock are"
        more = f" and {len(plan.missing) - _SHOWN} more" if len(plan.missing) > _SHOWN else ""
        sections.append(Text(text=f"{what} not there: {some}{more}", strong=True))
    if len(plan.troubles) > _SHOWN:
        sections.append(Text(text=f"{len(plan.troubles)} manifests cannot be used; the first {_SHOWN} are named"))
    missing: list[JSON] = [*sorted(plan.missing)]
    troubles: list[JSON] = [{"name": name, "message": message} for name, message in plan.troubles]
    return Report(
        tool="cache",
        sections=tuple(sections),
        problems=tuple(Problem(path=name, message=message) for name, message in plan.troubles[:_SHOWN]),
        document={
            "schema": SCHEMA,
            "dry_run": dry_run,
            "records": len(plan.entries),
            "new": num_new,
            "neffs": plan.num_neffs,
            "bytes": plan.num_bytes,
            "here_already": plan.num_here,
            "missing": missing,
            "problems": troubles,
        },
        exit_code=Exit.FAILED if plan.troubles else Exit.FINDINGS if plan.missing else Exit.CLEAN,
    )
