"""Which of many words a text contains.

Of few words each is asked. Of many, all parts of the text that are as long as some word are looked up: so it
costs the length of the text for each length of a word, however many words there are.
"""

from collections.abc import Iterable, Iterator


class Words:
    """Words and their numbers."""

    def __init__(self, numbers: Iterable[tuple[str, int]] = ()) -> None:
        self._numbers: dict[str, int] = dict(numbers)
        self._lengths: dict[int, int] = {}
        """How many words have a length."""
        for word in self._numbers:
            self._lengths[len(word)] = self._lengths.get(len(word), 0) + 1

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, word: str, number: int) -> None:
        self._numbers[word] = number
        self._lengths[len(word)] = self._lengths.get(len(word), 0) + 1

    def remove(self, word: str) -> None:
        del self._numbers[word]
        self._lengths[len(word)] -= 1
        if not self._lengths[len(word)]:
            del self._lengths[len(word)]

    def within(self, text: str) -> Iterator[int]:
        """The numbers of the words that the text contains, each once."""
        if len(self._numbers) <= len(self._lengths) * len(text):
            yield from (number for word, number in self._numbers.items() if word in text)
            return
        for length in self._lengths:
            parts = {text[start : start + length] for start in range(len(text) - length + 1)}
            yield from (self._numbers[part] for part in parts if part in self._numbers)
