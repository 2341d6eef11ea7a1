"""Who owns each distinct filter, and for how many reasons."""

from collections.abc import ItemsView

from branchline.routing.filters import Filter
from branchline.routing.prefix.places import Owner


class Owning:
    """The owners of each filter, counted: who leaves for one reason stays for the others."""

    def __init__(self) -> None:
        self._owners: dict[Filter, dict[Owner, int]] = {}

    def __len__(self) -> int:
        """How many distinct filters have an owner."""
        return len(self._owners)

    def __contains__(self, filter_: Filter) -> bool:
        return filter_ in self._owners

    def __getitem__(self, filter_: Filter) -> dict[Owner, int]:
        return self._owners[filter_]

    def items(self) -> ItemsView[Filter, dict[Owner, int]]:
        return self._owners.items()

    def add(self, filter_: Filter, owner: Owner) -> bool:
        """The owner has one reason more. Whether it is its first for this filter."""
        owners = self._owners.setdefault(filter_, {})
        owners[owner] = owners.get(owner, 0) + 1
        return owners[owner] == 1

    def remove(self, filter_: Filter, owner: Owner) -> dict[Owner, int] | None:
        """The owner has one reason less. If that was its last, the owners that are left; none: it is gone."""
        owners = self._owners[filter_]
        owners[owner] -= 1
        if owners[owner]:
            return None
        del owners[owner]
        if not owners:
            del self._owners[filter_]
        return owners
