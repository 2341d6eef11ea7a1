"""`bridge`: the process that carries what one cluster has for the brokers of another."""

from pathlib import Path

import click

from branchline.kafka.bridge import Bridge
from branchline.kafka.ends import Ends
from branchline.kafka.errors import ConfigError
from branchline.ops.clusters import EXAMPLE, named, read_clusters
from branchline.ops.output import emit
from branchline.ops.run import reporter, stopped_by_signals
from branchline.ops.settings import (
    CLUSTERS,
    NAMESPACE,
    check_settings,
    json_option,
    make_topics,
    option,
)


@click.command(short_help="Carry what one cluster has for another's brokers.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@option(CLUSTERS, click.Path(path_type=Path))
@option(NAMESPACE)
@click.option("--once", is_flag=True, help="Carry what is there now, and end.")
@click.option(
    "--skip-lost",
    is_flag=True,
    help="Go on although records that had still to be carried are gone from FROM.",
)
@json_option
def bridge(
    source: str,
    target: str,
    clusters: Path | None,
    namespace: str,
    once: bool,
    skip_lost: bool,
    as_json: bool,
) -> None:
    """Carry what cluster FROM has for brokers on cluster TO, exactly once, until Ctrl-C.

    Where brokers of two clusters are linked, run one in each direction. A cluster that does not
    answer is waited for.

    \b
    Examples:
      branchline bridge dublin virginia --clusters clusters.toml
      branchline bridge virginia dublin --clusters clusters.toml
      branchline bridge dublin virginia --once --json
    """
    make_topics(namespace)
    if clusters is None:
        raise ConfigError(
            "nothing says how the clusters are reached",
            hint=f"name a file with --clusters or BRANCHLINE_CLUSTERS; it holds for example {EXAMPLE!r}",
        )
    known = read_clusters(clusters)
    ends = Ends(source, named(known, source, clusters), target, named(known, target, clusters), namespace)
    if source == target:
        raise ConfigError("FROM and TO are one cluster", hint="name two: a bridge joins them")
    for cluster in (ends.source, ends.target):
        check_settings(cluster, str(clusters))
    report = reporter(as_json)
    report(f"bridge: from {source} to {target}, namespace {namespace}")
    with stopped_by_signals() as stop:
        carrying = Bridge(ends, report, skip_lost=skip_lost)
        carrying.run(stop, once=once)
    if as_json:
        emit({"from": source, "to": target, "restarts": carrying.restarts, **carrying.counts})
    else:
        report(f"bridge: ended, {carrying.describe()}")
