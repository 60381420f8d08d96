"""`shapeguard cache pull`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options, progress, share_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report


@click.command(short_help="Fetch records and NEFFs from object storage or a folder.")
@click.argument("url")
@share_options
@cache_options
@report_options
def command(folder: Path, url: str, lock_file: Path | None, model: str, neff_dir: Path | None, dry_run: bool) -> Report:
    """Fetch what URL has and this machine lacks: s3://bucket/folder, gs://, az:// or file:///folder. Only reads there.

    Every digest is checked before anything is to be seen here. With --lock, exit 1 if the remote lacks graphs of it.
    """
    from shapeguard.cache.named import named
    from shapeguard.cache.pull import plan_pull, pull
    from shapeguard.cache.remote import open_remote
    from shapeguard.cache.share_view import pulled
    from shapeguard.cache.store import GraphCache

    remote = open_remote(url, read_only=True)
    with GraphCache(folder, for_reading=dry_run) as cache:
        lock = named(lock_file) if lock_file else None
        plan = plan_pull(remote, cache, model=model, lock=lock, neff_dir=neff_dir)
        num_new = 0 if dry_run else pull(plan, remote, cache, neff_dir=neff_dir, progress=progress("fetched"))
    return pulled(plan, url, num_new=num_new, dry_run=dry_run)
