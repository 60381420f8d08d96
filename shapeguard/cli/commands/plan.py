"""`shapeguard plan`: which lengths to compile for."""

from __future__ import annotations

from collections.abc import Sequence
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
    from shapeguard.buckets.fit import Fit, Limits
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
        if path == "-":
            self.fail(f"--emit {kind} prints it; --write wants a file", param, ctx)
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
@click.option(
    "--max-graphs", type=_POSITIVE, metavar="K", help="The most graphs that may compile; 256 buckets at most."
)
@click.option("--for", "use", type=click.Choice(["infer", "train"]),
              help="infer: one graph a bucket; train: two, forward and backward. "
                   "[default: what the file of --buckets says, or infer]")  # fmt: skip
@click.option(
    "--align",
    type=_POSITIVE,
    help="Buckets are multiples of it, or --max-length itself. [default: 128, or what --buckets share]",
)
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
    from shapeguard.buckets.work import work_of_model
    from shapeguard.cli.plan_lengths import lengths_from

    _check(options)
    buckets = _take_file(options)
    work = work_of_model(options["model"]) if options["model"] else Work()
    limits = Limits(align=options["align"], max_length=options["max_length"], max_pad=options["max_pad"])
    lengths = lengths_from(options, limits.cut_at)
    given = _judged(lengths, buckets, work) if buckets else None
    counts = {each: rows for each, rows in lengths.counts.items() if given is None or each not in given.misfits}
    known = None if given is not None and given.misfits else lengths.real_tokens
    # Given buckets are compared with the best of their number, whatever limits they do not keep.
    own = limits if given is None else Limits(align=options["align"])
    planner = Planner(counts, limits=own, work=work, real_tokens=known)
    return _result(options, planner=planner, lengths=lengths, given=given, limits=limits)


def _take_file(options: dict[str, Any]) -> tuple[int, ...]:
    """Read --buckets; what a file says of kind, alignment and batches holds where no option does."""
    from shapeguard.buckets.spec import read_definition

    options["batch_sizes"] = {}
    if options["buckets"] is None:
        options |= {"use": options["use"] or "infer", "align": options["align"] or 128}
        return ()
    found = read_definition(options["buckets"])
    lengths = tuple(bucket.length for bucket in found.buckets)
    options |= {
        "use": options["use"] or found.use or "infer",
        "align": options["align"] or found.align or gcd(*lengths),
    }
    if not options["batch_tokens"]:
        options["batch_sizes"] = {each.length: each.batch_size for each in found.buckets if each.batch_size}
    return lengths


def _result(
    options: dict[str, Any], *, planner: Any, lengths: Lengths, given: Fit | None, limits: Limits
) -> Report | str:
    from shapeguard.buckets.choose import choose
    from shapeguard.buckets.emit import render
    from shapeguard.buckets.view import Planned, report

    wanted = _wanted(options, lengths, given)
    choice = choose(planner, wanted if given is None else replace(wanted, max_waste=None))
    definition = _definition(options, given or choice.fit)
    _write_all(options["write"], definition, overwrite=options["overwrite"])
    planned = Planned(
        lengths=lengths,
        choice=choice,
        wanted=wanted,
        definition=definition,
        has_work=bool(options["model"]),
        limits=limits,
        max_graphs=options["max_graphs"],
        given=given,
    )
    done = report(planned)
    if options["emit"] is not None:
        text = render(options["emit"], definition)
        document = {**done.document, "emitted": {"kind": options["emit"], "text": text}}
        return replace(done, sections=(Text(text=text, is_verbatim=True),), document=document)
    return replace(done, when_quiet=())


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
    paths = [str(Path(path).absolute()) for _, path in options["write"]]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise click.UsageError(f"--write names {twice!r} twice: give each kind a file of its own.")
    if options["batch_size"] and options["batch_tokens"]:
        raise click.UsageError("--batch-size cannot stand beside --batch-tokens.")
    if not any(options[name] is not None for name in ("max_graphs", "max_waste", "compile_minutes", "buckets")):
        raise click.UsageError("How many buckets? Give --max-graphs K, --max-waste SHARE or --compile-minutes M.")


def _demand(options: dict[str, Any], names: tuple[str, ...], other: str) -> None:
    for name in names:
        if options[name] and not options[other]:
            raise click.UsageError(f"--{name.replace('_', '-')} means nothing without --{other.replace('_', '-')}.")


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

    # The best that given buckets are compared with has as many as they are.
    graphs = options["max_graphs"] if given is None else len(given.buckets) * GRAPHS[options["use"]]
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
        misfits=sum(fit.misfits.values()),
        truncate=options["truncate"],
        batch_size=options["batch_size"],
        batch_sizes=options["batch_sizes"],
        batch_tokens=options["batch_tokens"],
        job=options["job"],
        model=_folder(options["model"]),
        data=options["data"] or "",
    )


def _folder(model: str | None) -> str:
    """Give the folder of a model, whose `config.json` may have been named."""
    return str(Path(model).parent) if model and Path(model).is_file() else model or ""


def _write_all(wanted: Sequence[tuple[str, str]], plan: Definition, *, overwrite: bool) -> None:
    """Write each kind into its file; nothing is written where one of them cannot be."""
    from shapeguard.buckets.emit import render

    texts = [(Path(path), render(kind, plan)) for kind, path in wanted]
    for path, _ in texts:
        if path.is_file() and not overwrite:
            raise UsageError(f"{str(path)!r} exists", hint="give --overwrite, or another file")
    for path, text in texts:
        try:
            replace_file(path, text.encode())
        except OSError as error:
            raise UsageError(
                f"cannot write {str(path)!r}: {error.strerror or error}",
                hint="give --write a path in a folder that exists",
            ) from error
