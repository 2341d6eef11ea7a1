"""Owners by number, for what compiled loops find.

An owner's *code* is the same as long as it is interested in anything; after that another owner may be given
it. Whoever keeps something by code asks which of them have changed.
"""

from branchline.routing.prefix.places import Owner


class OwnerCodes:
    """The codes of owners, and in how many places each of them stands."""

    def __init__(self, first: int = 0) -> None:
        """Codes from this one on are given out."""
        self.bound = first
        """All codes are below this."""
        self._codes: dict[Owner, int] = {}
        self._owners: dict[int, Owner] = {}
        self._uses: dict[int, int] = {}
        self._free: list[int] = []
        self._renewed: list[int] = []

    def __getitem__(self, owner: Owner) -> int:
        return self._codes[owner]

    def owner(self, code: int) -> Owner:
        """Whose code it is."""
        return self._owners[code]

    def renewed(self) -> list[int]:
        """The codes whose owners have changed since this was last asked, or what they are interested in."""
        renewed, self._renewed = self._renewed, []
        return renewed

    def joined(self, owner: Owner) -> int:
        """The owner stands in one place more; its code."""
        code = self._codes.get(owner)
        if code is None:
            if self._free:
                code = self._free.pop()
            else:
                code, self.bound = self.bound, self.bound + 1
            self._codes[owner], self._owners[code], self._uses[code] = code, owner, 0
        self._uses[code] += 1
        self._renewed.append(code)
        return code

    def again(self, owner: Owner) -> None:
        """The owner is interested in what it was for another reason too."""
        self._renewed.append(self._codes[owner])

    def left(self, owner: Owner) -> None:
        """The owner stands in one place less."""
        code = self._codes[owner]
        self._uses[code] -= 1
        if not self._uses[code]:
            del self._codes[owner], self._owners[code], self._uses[code]
            self._free.append(code)
