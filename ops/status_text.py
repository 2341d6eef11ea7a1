"""What `status` has gathered, for people."""

from collections.abc import Iterator
from typing import Any

from branchline.kafka.methods import methods_from_fields
from branchline.ops.output import table
from branchline.routing.methods.choosing import spelled
from branchline.routing.methods.counts import COUNTS


def describe(found: dict[str, Any]) -> str:
    """All of it, as text."""
    lines = [f"Kafka {found['bootstrap']}, namespace {found['namespace']}"]
    if not found["jobs"]:
        lines.append("no router has ever run here; start one with `branchline up` or `branchline router`")
    for job in found["jobs"]:
        lines += _job(job, found["methods"])
    lines += _brokers(found)
    lines += _table(
        ("LINK", "COST", "WAITING"),
        [
            (
                " - ".join(each["between"]),
                each["cost"],
                ", ".join(f"{count:,} for {broker}" for broker, count in each["waiting"].items()),
            )
            for each in found["links"]
        ],
    )
    lines += _table(
        ("INPUT", "RECORDS", "LAG", "READ BY"),
        [
            (each["topic"], each["records"], each["lag"], each["reader"] or "nobody yet")
            for each in found["inputs"]
        ],
    )
    lines += _table(
        ("SUBSCRIBER", "SUBSCRIPTIONS", "DELIVERED"),
        [(each["subscriber"], each["subscriptions"], each["delivered"]) for each in found["subscribers"]],
    )
    lines += ["", f"{found['subscriptions']:,} subscriptions, {found['dead_letters']:,} dead letters"]
    return "\n".join((*lines, *_pending(found["pending"])))


def _job(job: dict[str, Any], methods: dict[str, Any] | None) -> Iterator[str]:
    counts = job["counts"] or {}
    batches = (
        f", {job['batches']:,} batches, the last in {job['batch_ms'] or 0:,} ms"
        if job["batches"] is not None
        else ""
    )
    yield (
        f"{_named(job)}: {job['state']} (told {job['said_s_ago']:.0f} s ago){batches}, "
        f"lag {job['lag']:,}, {job['restarts'] or 0} restarts"
    )
    match job["job"]:
        case "router":
            yield from _router(job, counts, methods)
        case "bridge":
            yield (
                f"  since it started: {counts.get('records', 0):,} records carried "
                f"({counts.get('bytes', 0):,} bytes), {counts.get('diverted', 0):,} dead letters"
            )
        case "optimizer":
            yield (
                f"  since it started: {counts.get('updates', 0):,} updates of the tree, "
                f"{counts.get('snapshots', 0):,} snapshots"
            )
    for part in job["parts"] or ():
        yield f"{_part(part)}, difference {part.get('difference', 0):g}"
    if job["error"]:
        yield f"  last error: {job['error']}"


def _router(job: dict[str, Any], counts: dict[str, int], methods: dict[str, Any] | None) -> Iterator[str]:
    if job["topology"]:
        yield f"  its brokers have topology {job['topology']}"
    if job["delivery"]:
        again = (
            f"; {skipped:,} batches of a shard stood already" if (skipped := counts.get("skipped")) else ""
        )
        yield f"  it delivers {job['delivery'].replace('-', ' ')}{again}"
    yield from _methods(job, methods)
    if job["backlog"]:
        yield (
            f"  works off what was there when it started: {job['backlog']['handled']:,} of "
            f"{job['backlog']['records']:,} events, {job['backlog']['rate']:,} a second"
        )
    if job["rates"]:
        told = (
            f"{rate['accepted']:,.1f} events/s accepted and {rate['delivered']:,.1f} deliveries/s "
            f"over {window}"
            for window, rate in job["rates"].items()
        )
        yield f"  {'; '.join(told)}"
    yield (
        f"  since it started: {counts.get('accepted', 0):,} events accepted "
        f"({counts.get('opaque', 0):,} opaque), {counts.get('rejected', 0):,} rejected, "
        f"{counts.get('delivered', 0):,} deliveries, {counts.get('forwarded', 0):,} copies for neighbours"
    )
    yield (
        f"  matches: {counts.get('content_matches', 0):,} of content, "
        f"{counts.get('afresh_matches', 0):,} afresh, {counts.get('exact_checks', 0):,} exact checks; "
        f"{counts.get('older_walks', 0):,} walks in older versions of the tree; "
        f"{counts.get('slow', 0):,} of {counts.get('scanned', 0):,} scanned events decoded one by one"
    )
    own = [f"{name} {counts[name]:,}" for name in COUNTS if name in counts]
    if own:
        yield f"  counts of its methods: {', '.join(own)}"
    for part in job["tree"] or ():
        yield _part(part)


def _methods(job: dict[str, Any], methods: dict[str, Any] | None) -> Iterator[str]:
    """What it uses, and what to do if that is not what the namespace uses."""
    used = methods_from_fields(job["methods"])
    if used is None:
        return
    stands = methods_from_fields(methods)
    differs = (
        f"; the namespace's are {spelled(stands)}: start it anew, without a choice of its own"
        if stands is not None and stands != used
        else ""
    )
    yield f"  methods: {spelled(used)}{differs}"


def _part(part: dict[str, Any]) -> str:
    incarnation, clock = part["version"]
    return (
        f"  part {part['part']} of the tree at {incarnation}/{clock}: {part['nodes']:,} nodes, "
        f"{part['beside']:,} filters beside it"
    )


def _named(job: dict[str, Any]) -> str:
    brokers = f"broker{'s' if len(job['brokers']) > 1 else ''} {', '.join(map(str, job['brokers']))}"
    if job["job"] == "router":
        return f"router of {brokers}"
    return f"{job['job']} {job['name']}" + (f", for {brokers}" if job["brokers"] else "")


def _brokers(found: dict[str, Any]) -> list[str]:
    rows: list[tuple[object, ...]] = []
    advertised = any(each["advertisements"] for each in found["brokers"])
    spared = any(each["offloading"] for each in found["brokers"])
    for each in found["brokers"]:
        marks = [mark for mark in ("joining", "leaving") if each[mark]]
        state = each["state"] or "not served here"
        rows.append(
            (
                each["broker"],
                each["cluster"] or "",
                "" if each["topology"] is None else each["topology"],
                *((each["advertisements"],) if advertised else ()),
                *((_spared(each["offloading"] or {}),) if spared else ()),
                ", ".join((state, *marks)),
            )
        )
    told = (*(("ADVERTISED",) if advertised else ()), *(("SPARED WORK BY",) if spared else ()))
    return _table(("BROKER", "CLUSTER", "TOPOLOGY", *told, "STATE"), rows)


def _spared(offloading: dict[str, int]) -> str:
    """Who finds out for a broker which filters cover which, and how far they are."""
    if "volunteers" in offloading:
        waiting = f", {offloading['waiting']:,} filters wait" if offloading["waiting"] else ""
        return f"{offloading['volunteers']:,} volunteers{waiting}"
    if "fixed" in offloading:
        return f"claims about {offloading['fixed']:,} filters, of which {offloading['left']:,} stand"
    return ""


def _pending(pending: dict[str, Any]) -> Iterator[str]:
    if not pending["count"]:
        return
    yield f"{pending['count']:,} of them are not in force yet:"
    for each in pending["first"]:
        more = f" and {each['more']:,} more" if each["more"] else ""
        yield f"  {each['subscription']} waits for {', '.join(each['waits_for'])}{more}"
    if pending["count"] > len(pending["first"]):
        yield f"  and {pending['count'] - len(pending['first']):,} more"


def _table(headings: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    return ["", table(headings, rows)] if rows else []
