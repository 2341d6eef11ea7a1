"""`branchline chaos`: faults at random while events flow, and whether anything went wrong."""

import re
import sys
from contextlib import ExitStack

import click

from branchline.kafka.errors import SetupError
from branchline.kafka.home import Home
from branchline.ops.chaos.faults import KINDS, kinds_for
from branchline.ops.chaos.report import CLEAN, FINDINGS, VOID, markdown
from branchline.ops.chaos.run import Plan, run
from branchline.ops.chaos.world import AT_LEAST_ONCE, EXACTLY_ONCE
from branchline.ops.output import emit, say
from branchline.ops.run import prepare, unwound_by_sigterm
from branchline.ops.settings import json_option

SEEDS_MOST = 1_000
SEED_MAX = 2**31 - 1
MINUTES_MOST = 24 * 60
EVENTS_PER_S_MOST = 1_000

_SEEDS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


def _seeds(ctx: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """`7`, `1-10`, `1,4,8-9`."""
    seeds: list[int] = []
    for part in value.split(","):
        found = _SEEDS.fullmatch(part.strip())
        if found is None:
            raise click.BadParameter(f"{part!r} is neither a seed nor two of them, as in 1-10")
        low, high = int(found[1]), int(found[2] or found[1])
        if not low <= high <= SEED_MAX or len(seeds) + high - low >= SEEDS_MOST:
            raise click.BadParameter(f"{part!r}: low to high, {SEEDS_MOST:,} at most")
        seeds += range(low, high + 1)
    return seeds


@click.command(short_help="Let faults strike while events flow, and check what subscribers got.")
@click.option(
    "--minutes",
    type=click.FloatRange(0.1, MINUTES_MOST),
    default=3.0,
    show_default=True,
    help="How long faults are begun; what was owed is then waited for.",
)
@click.option(
    "--seed",
    "--seeds",
    "seeds",
    default="1",
    show_default=True,
    callback=_seeds,
    help="What the schedule is drawn from: 7, or several runs: 1-10 or 1,4.",
)
@click.option(
    "--nodes",
    type=click.Choice(["1", "3"]),
    default="3",
    show_default=True,
    help="Kafka nodes; with three, every record is on all and two must have it.",
)
@click.option(
    "--delivery",
    type=click.Choice([AT_LEAST_ONCE, EXACTLY_ONCE]),
    default=AT_LEAST_ONCE,
    show_default=True,
    help="The router's setting; under exactly-once every repeat is a finding.",
)
@click.option(
    "--rate",
    type=click.FloatRange(1, EVENTS_PER_S_MOST),
    default=40.0,
    show_default=True,
    help="Events a second.",
)
@click.option(
    "--fault",
    "only",
    multiple=True,
    type=click.Choice([kind.name for kind in KINDS]),
    help="Draw from these kinds of fault only; may be given several times.",
)
@click.option("--keep", is_flag=True, help="Leave the folder with Kafka's data, checkpoints and logs.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a table with a row for each run.")
@json_option
@click.pass_context
def chaos(
    ctx: click.Context,
    minutes: float,
    seeds: list[int],
    nodes: str,
    delivery: str,
    rate: float,
    only: tuple[str, ...],
    keep: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Let random faults strike while events flow, subscriptions come and go, and check what subscribers got.

    Starts a Kafka of its own behind a proxy, a router for three brokers and a Tree Optimizer, in a temporary
    folder; everything is ended and removed afterwards. Processes are killed and stopped, connections cut and
    stalled, leaders moved, the disk made full. The schedule is drawn from the seed, and told.

    Exits with 0 if everybody got what was owed, 1 if something was lost, misrouted, duplicated, out of order
    or stuck, and 2 if fewer than half of the faults hit a batch in progress, which shows nothing.

    \b
    Examples:
      branchline chaos --minutes 3 --seed 7
      branchline chaos --minutes 1 --nodes 1 --fault worker-kill --fault cut
      branchline chaos --minutes 6 --seeds 1-10 --markdown
    """
    if sys.platform != "linux":
        raise SetupError("chaos looks at processes as Linux shows them", hint="run it on Linux")
    possible = kinds_for(int(nodes), optimizer=True)
    if only and not possible.keys() & set(only):
        raise click.UsageError(f"with --nodes {nodes} no fault is left to draw from")
    options = [f"--minutes {minutes:g}", f"--nodes {nodes}", f"--delivery {delivery}", f"--rate {rate:g}"]
    options += [f"--fault {kind}" for kind in only]
    reports = []
    with ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        jars = prepare(Home.default(), say)
        for seed in seeds:
            again = f"branchline chaos --seed {seed} {' '.join(options)}"
            plan = Plan(seed, minutes, int(nodes), delivery, rate, only=only, again=again)
            report = run(plan, jars, say, keep)
            reports.append(report)
            if as_json:
                emit(report.fields())
            elif as_markdown:
                say(report.describe())
            else:
                click.echo(report.describe())
    if as_markdown and not as_json:
        click.echo(markdown(reports))
    codes = {report.exit_code for report in reports}
    ctx.exit(next(code for code in (FINDINGS, VOID, CLEAN) if code in codes))
