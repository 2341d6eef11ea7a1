"""Prefix forwarding as a whole: whatever happens in whatever order, who is owed an event is found."""

from collections import Counter
from unittest.mock import patch

from amounts import often
from filter_world import dependent, normal
from hypothesis import given
from prefix_runs import Run
from prefix_scripts import Script, scripts, seeded, some_filters

from branchline.routing.prefix import trees


@often
@given(scripts(normal(dependent)))
def test_who_is_owed_an_event_gets_it(script: Script) -> None:
    """At every broker, after every step, nobody is missed or wrongly certain, and the right ones get it."""
    Run(script).play()


@often
@given(scripts(some_filters))
def test_too_many_numbers_only_add(script: Script) -> None:
    """The same where no more than one overflow number travels with an event."""
    with patch.object(trees, "NUMBERS_MAX", 1):
        Run(script).play()


def test_everything_comes_to_pass() -> None:
    """The scripts are not idle: all that they can meet, they meet many times."""
    seen: Counter[str] = Counter()
    with patch.object(trees, "NUMBERS_MAX", 1):
        for seed in range(40):
            seen += Run(seeded(seed)).play().seen
    for what in ("lost", "restarts", "GAP", "OLD", "INCOMPLETE", "arrays", "many", "numbered"):
        assert seen[what] > 5, what
    for what in ("updates", "APPLIED", "numbers", "cut", "afresh", "certain", "doubtful"):
        assert seen[what] > 40, what
