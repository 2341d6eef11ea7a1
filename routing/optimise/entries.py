"""Entries of a table: what a broker asks of an event on behalf of another home.

An entry matches an event if one of its filters does, or, where it has a tree, if the tree does. What a
matching keeps are interests, so an entry becomes one: with the entry's cover, and with its tree as the
expression. Its identity is made of what it says, so that nothing depends on when it was made.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from branchline.routing.boolean.trees import AllOf, Node, OneOf, of_cover, tree_of
from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity
from branchline.routing.covers import Cover
from branchline.routing.expression import Anything, Expression
from branchline.routing.filters import Contains, Filter, Range, filter_order
from branchline.routing.methods.protocols import Interest


@dataclass(frozen=True, slots=True)
class Entry:
    """Some events that are wanted."""

    cover: Cover
    """Holds for all of them. If there is no tree, they are just what it holds for."""
    tree: Expression | Node | None = None
    """For a matching that evaluates trees of predicates: what of the cover is wanted. The cover holds for
    everything that the tree was true of before it was pruned, if it was."""


def plain(filter_: Filter) -> Entry:
    """What one filter matches."""
    return Entry((filter_,))


def entries_of(interest: Interest, trees: bool) -> list[Entry]:
    """What the interest asks for: a tree, or each filter of its cover by itself."""
    compiled = interest.compiled
    if trees and not (compiled.exact and len(compiled.cover) == 1):
        return [Entry(compiled.cover, compiled.expression)]
    return [plain(each) for each in compiled.cover]


def separate(entries: Iterable[Entry]) -> list[Entry]:
    """The same, in order, with an entry for each filter where there is no tree."""
    return in_order(
        each for entry in entries for each in ((entry,) if entry.tree else map(plain, entry.cover))
    )


def node_of(entry: Entry) -> Node:
    """The entry as a tree of predicates."""
    if entry.tree is None:
        return of_cover(entry.cover)
    if isinstance(entry.tree, AllOf | OneOf | Range | Contains):
        return entry.tree
    return tree_of(entry.tree).root


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The entries, each once, in the one order that hangs on nothing but what they say."""
    return sorted(set(entries), key=_order)


def _order(entry: Entry) -> tuple[object, ...]:
    return [filter_order(each) for each in entry.cover], repr(entry.tree)


def as_interest(entry: Entry, home: str) -> Interest:
    """The entry as the interest of a home. One without a tree has the expression of everything."""
    name = blake2b(repr((entry.cover, entry.tree)).encode(), digest_size=16).hexdigest()
    expression: Expression = Anything()
    tree: Node | None = None
    if isinstance(entry.tree, AllOf | OneOf | Range | Contains):
        tree = entry.tree
    elif entry.tree is not None:
        expression = entry.tree
    compiled = Compiled(expression, entry.cover, None, (), frozenset())
    return Interest(Identity(home, "", name), compiled, home, tree)
