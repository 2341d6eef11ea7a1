"""A small TCP proxy in front of a server on this machine, which can cut and stall what passes it.

Theory of operation. All proxies of a run share one event loop in a thread. Each connection is two pumps, one
for each direction. A pump that has read something waits at the gate before it passes it on: while the gate is
closed (`stall`) connections stay open and nothing moves, as with a network that drops packets. `cut` resets
all connections and refuses new ones, as with a host that is gone; bytes on their way are lost with them.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

ADDRESS = "127.0.0.1"
PIECE_BYTES = 1 << 16
CALL_TIMEOUT_S = 10.0

Result = TypeVar("Result")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """What the coroutine gives, from any other thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)

    def __enter__(self) -> "Loop":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Proxy:
    """Passes on what comes to `port` to `target`, a port on this machine too."""

    def __init__(self, loop: Loop, port: int, target: int) -> None:
        self._loop = loop
        self.port = port
        self._target = target
        self._server: asyncio.Server | None = None
        self._gate = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self.connections = 0
        """How many there were in all."""

    def heal(self) -> None:
        """Let everything pass, now and from now on."""
        self._loop.run(self._heal())

    def cut(self) -> None:
        """Reset all connections, and refuse new ones."""
        self._loop.run(self._cut())

    def stall(self) -> None:
        """Keep connections open and take new ones, but pass nothing on."""
        self._loop.run(self._stall())

    async def _heal(self) -> None:
        self._gate.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connect, ADDRESS, self.port)

    async def _stall(self) -> None:
        self._gate.clear()

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        other: asyncio.StreamWriter | None = None
        try:
            answers, other = await asyncio.open_connection(ADDRESS, self._target)
            self._open.add(other)
            pumps = {
                asyncio.ensure_future(self._pump(reader, other)),
                asyncio.ensure_future(self._pump(answers, writer)),
            }
            # Where one direction ends, the other one has nobody to talk to.
            _, left = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in left:
                pump.cancel()
        except OSError:
            pass  # the server is not there: to the client it looks like a closed connection
        finally:
            for each in (writer, other):
                if each is not None:
                    self._open.discard(each)
                    each.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                await self._gate.wait()
                writer.write(piece)
                await writer.drain()
