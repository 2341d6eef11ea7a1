"""A compiled filter whose text was compiled before: its cover is stored, the rest is compiled when needed.

Most events are decided by covers alone. Only a residual, or an event with arrays, needs the expression; then
the text is read and compiled as if it were new.
"""

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, Left, compile_filter
from branchline.routing.covers import Cover
from branchline.routing.expression import Expression, Path
from branchline.routing.prefix.keyed import read_filters
from branchline.routing.prefix.siblings import Kin


class Recalled(Compiled):
    """Behaves as what `compile_filter` gives for the text."""

    __slots__ = ("_cover", "_data", "_exact", "_kins", "_paths", "_text", "_whole")

    # What is compiled never changes; here that means what can be seen of it.
    __setattr__ = object.__setattr__

    def __init__(
        self,
        text: tuple[str, str],
        exact: bool,
        paths: frozenset[Path],
        data: memoryview,
        kins: list[Kin],
    ) -> None:
        """A filter of this spelling and text, whose cover lies in the data."""
        self._text = text
        self._exact = exact
        self._paths = paths
        self._data = data
        self._kins = kins
        self._cover: Cover | None = None
        self._whole: Compiled | None = None

    @property
    def exact(self) -> bool:
        return self._exact

    @property
    def cover(self) -> Cover:
        if self._cover is None:
            self._cover = tuple(read_filters(self._data, self._kins))
        return self._cover

    @property
    def paths(self) -> frozenset[Path]:
        return self._paths

    @property
    def expression(self) -> Expression:
        return self._compiled().expression

    @property
    def residual(self) -> Expression | None:
        return None if self._exact else self._compiled().residual

    @property
    def left(self) -> tuple[Left, ...]:
        return self._compiled().left

    def _compiled(self) -> Compiled:
        if self._whole is None:
            whole = compile_filter(*self._text)
            assert not isinstance(whole, Rejection), "what was accepted before can be compiled"
            self._whole = whole
        return self._whole
