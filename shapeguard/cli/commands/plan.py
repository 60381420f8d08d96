"""`shapeguard plan`: which lengths to compile for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shapeguard.cli.amounts import Amount, Share
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.files import replace_file
from shapeguard.core.report import Report, Text

if TYPE_CHECKING:
    from shapeguard.buckets.choose import Price, Wanted
    from shapeguard.buckets.emit import Definition
    from shapeguard.buckets.fit import Fit
    from shapeguard.buckets.lengths import Lengths

KINDS = ("toml", "collator", "prompts", "vllm", "jobs")


class Written(click.ParamType["tuple[str, str]"]):
    """`KIND=FILE`."""

    name = "kind=file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first `=`; the kind must be known."""
        if isinstance(value, tuple):
            return value
        kind, _, path = str(value).partition("=")
        if kind not in KINDS or not path:
            self.fail(f"{value!r} is not KIND=FILE with one of {', '.join(KINDS)}", param, ctx)
        return kind, path


_POSITIVE = click.IntRange(min=1)
_AMOUNT = Amount()


@click.command(short_help="Find the lengths worth compiling for.")
@click.option("--lengths", metavar="FILE", help="Numbers, or a histogram `length,count`; `-` is standard input.")
@click.option("--data", metavar="PATH", help="Rows as JSONL, CSV, text, Arrow, Parquet, or a folder of `datasets`.")
@click.option("--run", type=click.Path(path_type=Path), help="A folder of `shapeguard trace`: what was really seen.")
@click.option("--tokenizer", metavar="NAME", help="For --data with texts: a folder with tokenizer.json, or a hub name.")
@click.option("--column", metavar="NAME", help="For --data: the column with texts, token ids or lengths.")
@click.option("--split", metavar="NAME", help="For --data with several splits. [default: train]")
@click.option("--max-graphs", type=_POSITIVE, metavar="K", help="The most graphs that may compile.")
@click.option("--for", "use", type=click.Choice(["infer", "train"]), default="infer", show_default=True,
              help="infer: one graph a bucket; train: two, forward and backward.")  # fmt: skip
@click.option("--align", type=_POSITIVE, help="Buckets are multiples of it. [default: 128, or what --buckets share]")
@click.option("--max-length", type=_POSITIVE, help="No bucket is longer; rows that are count as left out.")
@click.option("--truncate", is_flag=True, help="Cut rows to --max-length instead.")
@click.option("--max-waste", type=Share(), help="The fewest buckets whose padding stays below this share: 20%.")
@click.option("--max-pad", type=click.IntRange(min=0), help="The most padding tokens that any row may get.")
@click.option("--model", metavar="PATH", help="config.json or its folder: counts attention's quadratic share as work.")
@click.option("--compile-minutes", type=_AMOUNT, help="Of one graph: finds the number of buckets that costs least.")
@click.option("--tokens-per-second", type=_AMOUNT, help="For --compile-minutes: real tokens, were nothing padded.")
@click.option("--traffic", type=_POSITIVE, help="For --compile-minutes: rows to serve. [default: the rows given]")
@click.option("--price", type=_AMOUNT, help="For --compile-minutes: of an hour on the device.")
@click.option("--buckets", metavar="LIST", help="Judge these instead: 128,512 or a buckets.toml.")
@click.option("--batch-size", type=_POSITIVE, help="Rows of a batch, for what is written.")
@click.option("--batch-tokens", type=_POSITIVE, help="Tokens of a batch instead: short buckets get more rows.")
@click.option("--job", default="", metavar="COMMAND", help="For jobs: a command line with {bucket} and {batch}.")
@click.option("--emit", type=click.Choice(KINDS), help="Print this instead of the report.")
@click.option("--write", type=Written(), multiple=True, help=f"Write KIND=FILE as well: {', '.join(KINDS)}.")
@click.option("--overwrite", is_flag=True, help="Let --write replace files.")
@report_options
def command(**options: Any) -> Report | str:
    """Find the lengths that pad the least for a number of graphs, from the lengths of your own rows."""
    from shapeguard.buckets.fit import Limits, Work
    from shapeguard.buckets.plan import Planner
    from shapeguard.buckets.spec import lengths_of
    from shapeguard.buckets.work import work_of_model

    _check(options)
    buckets = None if options["buckets"] is None else lengths_of(options["buckets"])
    options["align"] = options["align"] or (gcd(*buckets) if buckets else 128)
    work = work_of_model(options["model"]) if options["model"] else Work()
    limits = Limits(align=options["align"], max_length=options["max_length"], max_pad=options["max_pad"])
    lengths = _lengths(options, limits.longest)
    given = _judged(lengths, buckets, work) if buckets else None
    counts = {each: rows for each, rows in lengths.counts.items() if given is None or each not in given.misfits}
    known = None if given is not None and given.misfits else lengths.real_tokens
    planner = Planner(counts, limits=limits, work=work, real_tokens=known)
    return _result(options, planner=planner, lengths=lengths, given=given)


def _result(options: dict[str, Any], *, planner: Any, lengths: Lengths, given: Fit | None) -> Report | str:
    from shapeguard.buckets.choose import choose
    from shapeguard.buckets.emit import render
    from shapeguard.buckets.view import Planned, report

    wanted = _wanted(options, lengths, given)
    choice = choose(planner, wanted)
    definition = _definition(options, given or choice.fit)
    for kind, path in options["write"]:
        _write(Path(path), render(kind, definition), overwrite=options["overwrite"])
    planned = Planned(
        lengths=lengths,
        choice=choice,
        wanted=wanted,
        definition=definition,
        has_work=bool(options["model"]),
        given=given,
    )
    done = report(planned)
    if options["emit"] is None:
        return done
    text = Text(text=render(options["emit"], definition), is_verbatim=True)
    return replace(done, sections=(text,))


def _check(options: dict[str, Any]) -> None:
    sources = [name for name in ("lengths", "data", "run") if options[name]]
    if len(sources) != 1:
        given = " and ".join(f"--{name}" for name in sources)
        raise click.UsageError(f"{given or 'Nothing'} was given: name one of --lengths, --data and --run.")
    _demand(options, ("tokenizer", "column", "split"), "data")
    _demand(options, ("tokens_per_second", "traffic", "price"), "compile_minutes")
    _demand(options, ("truncate",), "max_length")
    if options["compile_minutes"] and not options["tokens_per_second"]:
        raise click.UsageError("--compile-minutes needs --tokens-per-second, to weigh compiling against padding.")
    if options["batch_size"] and options["batch_tokens"]:
        raise click.UsageError("--batch-size cannot stand beside --batch-tokens.")
    if not any(options[name] is not None for name in ("max_graphs", "max_waste", "compile_minutes", "buckets")):
        raise click.UsageError("How many buckets? Give --max-graphs K, --max-waste SHARE or --compile-minutes M.")


def _demand(options: dict[str, Any], names: tuple[str, ...], other: str) -> None:
    for name in names:
        if options[name] and not options[other]:
            raise click.UsageError(f"--{name.replace('_', '-')} means nothing without --{other.replace('_', '-')}.")


def _lengths(options: dict[str, Any], longest: int | None) -> Lengths:
    if options["run"]:
        found = _of_run(options["run"])
    elif options["data"]:
        from shapeguard.buckets.texts import read_data

        found = read_data(
            options["data"], tokenizer=options["tokenizer"], column=options["column"], split=options["split"]
        )
    else:
        from shapeguard.buckets.lengths import read_lengths

        found = read_lengths(options["lengths"])
    return found.truncated(longest) if options["truncate"] and longest else found


def _of_run(folder: Path) -> Lengths:
    from shapeguard.buckets.lengths import from_batches, from_calls
    from shapeguard.runs.stream import read_run

    processes = read_run(folder).processes
    batches = [(dict(batch.shapes), times) for each in processes for batch, times in each.batches.items()]
    if batches:
        tokens = (sum(each.tokens[0] for each in processes), sum(each.tokens[1] for each in processes))
        found = from_batches(batches, tokens=tokens, source=str(folder))
    else:
        shapes = [shape for each in processes for graph in each.compiles for shape in _prompts(graph)]
        found = from_calls(shapes, source=str(folder))
    if not found.counts:
        raise UsageError(f"{folder} saw no batches of tokens", hint="give the lengths with --lengths or --data")
    return found


def _prompts(graph: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of token ids of more than the one token that a decode step takes.

    Where the prompt runs through the model eagerly, the look-up of its tokens shows it.
    """
    is_lookup = graph.kind == "eager" and graph.name.startswith("embedding")
    for part in graph.inputs:
        is_ids = part.path == "indices" if is_lookup else part.path.endswith("input_ids")
        if is_ids and len(part.shape) == 2 and part.shape[1] > 1:
            yield part.shape


def _judged(lengths: Lengths, buckets: Sequence[int], work: Any) -> Fit:
    from shapeguard.buckets.fit import fit

    found = fit(lengths.counts, buckets, work, real_tokens=lengths.real_tokens)
    if lengths.num_rows and not any(found.rows):
        raise UsageError(
            f"no row fits these buckets: the shortest has {min(lengths.counts)} tokens", hint="give longer --buckets"
        )
    return found


def _wanted(options: dict[str, Any], lengths: Lengths, given: Fit | None) -> Wanted:
    from shapeguard.buckets.choose import GRAPHS, Wanted

    graphs = options["max_graphs"]
    if given is not None and graphs is None:
        graphs = len(given.buckets) * GRAPHS[options["use"]]
    cap = options["max_waste"]
    return Wanted(use=options["use"], max_graphs=graphs, max_waste=cap, price=_price(options, lengths))


def _price(options: dict[str, Any], lengths: Lengths) -> Price | None:
    from shapeguard.buckets.choose import Price

    if not options["compile_minutes"]:
        return None
    return Price(
        compile_minutes=options["compile_minutes"],
        tokens_per_second=options["tokens_per_second"],
        traffic=options["traffic"] or lengths.num_rows,
        per_hour=options["price"],
    )


def _definition(options: dict[str, Any], fit: Fit) -> Definition:
    from shapeguard.buckets.emit import Definition

    return Definition(
        buckets=fit.buckets,
        rows=fit.rows,
        align=options["align"],
        use=options["use"],
        batch_size=options["batch_size"],
        batch_tokens=options["batch_tokens"],
        job=options["job"],
    )


def _write(path: Path, text: str, *, overwrite: bool) -> None:
    if path.exists() and path.is_file() and not overwrite:
        raise UsageError(f"{str(path)!r} exists", hint="give --overwrite, or another file")
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror or error}", hint="give --write a path in a folder that exists"
        ) from error
