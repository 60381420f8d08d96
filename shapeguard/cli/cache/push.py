"""`shapeguard cache push`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options, demand_folder, progress, share_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report


@click.command(short_help="Send records and NEFFs to object storage or a folder.")
@click.argument("url")
@share_options
@cache_options
@report_options
def command(folder: Path, url: str, lock_file: Path | None, model: str, neff_dir: Path | None, dry_run: bool) -> Report:
    """Send what is recorded to URL: s3://bucket/folder, gs://, az:// or file:///folder.

    Objects are named by their digest and never change; a manifest appears only when all that it names is there. What is
    there already is not sent again, so that a push that broke off is resumed by pushing again.
    """
    from shapeguard.cache.named import named
    from shapeguard.cache.push import plan_push, push
    from shapeguard.cache.remote import open_remote
    from shapeguard.cache.share import chosen
    from shapeguard.cache.share_view import pushed
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import with_skipped

    remote = open_remote(url, read_only=os.environ.get("SHAPEGUARD_REMOTE_READ_ONLY", "") not in ("", "0"))
    with GraphCache(folder, for_reading=True) as cache:
        records = chosen(cache, model)
    demand_folder(neff_dir)
    plan = plan_push(records, remote, lock=named(lock_file) if lock_file else None, neff_dir=neff_dir)
    troubles = [] if dry_run else push(plan, remote, progress=progress("sent"))
    return with_skipped(pushed(plan, url, dry_run=dry_run, troubles=troubles), cache.skipped)
