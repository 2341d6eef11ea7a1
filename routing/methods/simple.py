"""Simple dissemination: what a broker learns it tells every neighbour but the teller, so all hear of all."""

from collections.abc import Iterable, Sequence

from branchline.routing.control import Ended, Subscribed


class Simple:
    """Subscriptions flood over all links."""

    def tell(
        self, change: Subscribed | Ended, teller: str | None, neighbours: Sequence[str]
    ) -> Iterable[tuple[str, Subscribed | Ended]]:
        return ((neighbour, change) for neighbour in neighbours if neighbour != teller)

    def tell_all(self, known: Iterable[Subscribed | Ended]) -> Iterable[Subscribed | Ended]:
        return known
