"""What methods count, by names of their own, beside what is counted whatever the method.

A method puts its counts into `Found.counts`; a job adds them up and tells them on `stats`. A name that is not
here is told to nobody.
"""

from collections.abc import Mapping

COUNTS: Mapping[str, tuple[str, str]] = {
    "keys_sent": ("reuse", "keys of subscriptions that travel with copies"),
    "keys_used": ("reuse", "keys that led to somebody"),
    "keys_unknown": ("reuse", "keys of subscriptions that the broker does not know"),
    "lists_complete": ("reuse", "copies that were led by keys alone, without looking at their content"),
    "bloom_made": ("bloom", "events of which a Bloom filter was made, where somebody looked at the content"),
    "bloom_bits": ("bloom", "bits that are set in these"),
    "bloom_led": ("bloom", "copies that were led by their Bloom filter alone"),
    "bloom_found": ("bloom", "neighbours and subscriptions that were found by bits"),
    "bloom_differed": ("bloom", "copies from brokers that knew other constraints: matched afresh"),
    "tree_walks": ("tree", "events that were matched against the Routing Tree, at whichever broker"),
    "filters_asked": ("table", "filters that an event was tried on"),
    "interfaces_excluded": ("counting", "neighbours and subscriptions that were ruled out beforehand"),
    "constraints_counted": ("counting", "satisfied constraints that were counted for a filter"),
    "interfaces_early": ("counting", "neighbours and subscriptions found before all was counted"),
    "access_hits": ("access", "owners that the index has found"),
    "access_unindexed": (
        "access",
        "events with too many choices for the index: every filter was asked",
    ),
    "kd_visited": ("kd", "nodes of k-d trees that were visited"),
    "kd_checked": ("kd", "filters whose other constraints were verified"),
    "kd_waiting": ("kd", "filters that are in no tree yet, and were asked one by one"),
    "kd_beside": ("kd", "filters without a range of numbers, asked one by one"),
    "told_identical": ("identity", "filters that a neighbour was not told because it knows the same one"),
    "told_covered": (
        "covering",
        "filters that a neighbour was not told because another one covers them",
    ),
    "table_placed": ("poset", "filters that were placed in the table that all neighbours share"),
    "tasks_given": ("rto", "slices of the table that subscribers were asked to compare with new filters"),
    "answers_taken": ("rto", "answers of subscribers that were waited for"),
    "answers_unasked": ("rto", "answers that nobody waited for, or that did not fit what was asked"),
    "slices_offloaded": ("rto", "slices for which what most subscribers said was gone by"),
    "slices_computed": (
        "rto",
        "slices that the broker compared itself: nobody had, or they differed",
    ),
    "claims_refuted": ("rto", "claims of subscribers that a test has shown to be false, with `ff` too"),
    "rounds_timed_out": ("rto", "rounds in which somebody did not answer in time"),
    "sets_chosen": ("ff", "times that the broker has chosen another fixed set"),
    "sets_given": ("ff", "subscribers that were told the fixed set"),
    "filters_claimed": ("ff", "filters that were placed by what their subscriber claims"),
    "claims_outdated": (
        "ff",
        "subscriptions with claims about an older set, or that do not fit their filter",
    ),
    "told_merged": ("merging", "filters fewer that a neighbour was told because some together are one"),
    "told_merged_imperfectly": ("imperfect", "the same because some are nearly one"),
    "told_pruned": ("pre-prune", "predicates of filters that a neighbour was not told"),
    "filters_hidden": ("covering", "filters left out because another one covers them, at each match"),
    "filters_merged": ("merging", "filters fewer because some together are one, at each match"),
    "filters_merged_imperfectly": ("imperfect", "filters fewer because some are nearly one, at each match"),
    "predicates_fulfilled": ("boolean", "predicates that an event satisfies"),
    "trees_evaluated": ("boolean", "trees with enough of them to be evaluated"),
    "predicates_pruned": ("prune", "predicates of other homes' filters that are left out, at each match"),
    "events_unadvertised": ("advertised", "events that entered and that no advertisement holds for"),
    "told_unadvertised": ("advertised", "filters that a neighbour was not told, since none overlaps them"),
    "covering_tests": (
        "tell-covering",
        "filters that were compared, to tell neighbours only what none covers",
    ),
    "told_inflated": ("cbcb", "filters that neighbours were told, and that stay though they are gone"),
    "told_deflated": ("cbcb", "filters that were taken back from neighbours that had asked"),
    "requests_answered": ("cbcb", "requests what is wanted that were replied to"),
    "predicates_replaced": ("replace", "predicates that a wider one stands for, at each match"),
}
"""Names, each with the method that counts it and what it counts."""
