"""The automaton finds the words that `in` finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.compiled.memory import address
from branchline.routing.compiled.words import Automaton, automaton, find_words

letters = st.text("ab", max_size=5).map(str.encode)
sets = st.sets(letters, max_size=12)


@given(st.lists(sets, min_size=1, max_size=3), st.text("abcAB", max_size=30), st.booleans())
def test_the_words_that_a_text_contains(kins: list[set[bytes]], text: str, fold: bool) -> None:
    """Of each kin exactly those, each once; the empty word in every text."""
    words = [word for kin in kins for word in sorted(kin)]
    first = np.cumsum([0, *map(len, kins)]).astype(np.int32)
    blob = np.frombuffer(b"".join(words) + bytes(16), np.uint8)
    at = np.cumsum([0, *map(len, words)])
    arrays = automaton(first, blob, at)
    made = Automaton(*(address(arrays[name]) for name in Automaton._fields))
    data = np.frombuffer(text.encode() + bytes(1), np.uint8)
    stamp, found = np.full(len(words), -1, np.int32), np.empty(len(words), np.int32)
    for root, kin in enumerate(kins):
        count = find_words(
            made, root, address(data), len(text), fold, address(stamp), 7, address(found), found.size, 0
        )
        read = (text.lower() if fold else text).encode()
        got = [words[each] for each in found[:count].tolist()]
        assert sorted(got) == sorted(word for word in kin if word in read)


@given(sets, st.text("ab", max_size=30))
def test_words_without_room_are_counted(words: set[bytes], text: str) -> None:
    """Nothing is written where there is no room."""
    ordered = sorted(words)
    blob = np.frombuffer(b"".join(ordered) + bytes(16), np.uint8)
    first = np.array([0, len(ordered)], np.int32)
    arrays = automaton(first, blob, np.cumsum([0, *map(len, ordered)]))
    made = Automaton(*(address(arrays[name]) for name in Automaton._fields))
    data = np.frombuffer(text.encode() + bytes(1), np.uint8)
    stamp, found = np.full(len(words), -1, np.int32), np.full(3, 99, np.int32)
    count = find_words(made, 0, address(data), len(text), False, address(stamp), 0, address(found), 1, 0)
    assert count == sum(word in text.encode() for word in words)
    assert found[1:].tolist() == [99, 99]
