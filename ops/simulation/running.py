"""Running cases, in this process or over several, while somebody watches.

Which process runs a case, and when, shows in nothing but the lines of progress: results come back in the
order of the cases. Processes are spawned, so that they begin with nothing but the code, on every system.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import Queue
from threading import Thread
from typing import Any

from branchline.kafka.errors import JobFailed
from branchline.ops.simulation.kind import Case, Result
from branchline.ops.simulation.kinds import KINDS

BEAT_S = 5.0
"""How often a case says how far it is."""

Say = Callable[[str], None]

_beats: "Queue[str | None] | None" = None
"""In a process that was spawned: where its beats go."""


@dataclass(slots=True)
class _Heart:
    """Passes on what a case says of itself, but not every time."""

    case: Case
    say: Say
    said_at: float

    def beat(self, message: str) -> None:
        now = time.monotonic()
        if now - self.said_at >= BEAT_S:
            self.said_at = now
            self.say(f"  {self.case.describe()}: {message}")


def run_cases(kind: str, spec: Any, cases: list[Case], processes: int, say: Say) -> list[Result]:
    """The result of each case, in order."""
    processes = min(processes, len(cases))
    say(f"{len(cases)} cases on {processes} {'process' if processes == 1 else 'processes'}")
    if processes > 1:
        return _run_over_processes(kind, spec, cases, processes, say)
    results = []
    for case in cases:
        results.append(_run(kind, spec, case, say))
        _tell_done(case, results[-1], len(results), len(cases), say)
    return results


def _run(kind: str, spec: Any, case: Case, say: Say) -> Result:
    result: Result = KINDS[kind].run(spec, case, _Heart(case, say, time.monotonic()).beat)
    return result


def _tell_done(case: Case, result: Result, done: int, of: int, say: Say) -> None:
    say(f"{done}/{of} {case.describe()}{': failed' if result.failures else ''}")


def _run_over_processes(kind: str, spec: Any, cases: list[Case], processes: int, say: Say) -> list[Result]:
    context = multiprocessing.get_context("spawn")
    beats: Queue[str | None] = context.Queue()
    listener = Thread(target=_pass_on, args=(beats, say), daemon=True)
    listener.start()
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(processes, context, _begin, (beats,))
    try:
        futures: dict[Future[Result], Case] = {
            executor.submit(_run_spawned, kind, spec, case): case for case in cases
        }
        for done, future in enumerate(as_completed(futures), 1):
            _tell_done(futures[future], future.result(), done, len(cases), say)
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise JobFailed(
            "a process that ran a case was ended from outside",
            hint="it may have used too much memory: give fewer --processes",
        ) from None
    except BaseException:
        # Whoever interrupts does not want to wait for cases that are being run.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        beats.put(None)
        listener.join()
        beats.close()


def _begin(beats: "Queue[str | None]") -> None:
    """In a process that was spawned, before its first case."""
    global _beats
    _beats = beats
    # Ctrl-C reaches all processes; only the first one is to tell of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_spawned(kind: str, spec: Any, case: Case) -> Result:
    assert _beats is not None, "a process begins with _begin"
    return _run(kind, spec, case, _beat_while_watched)


def _beat_while_watched(message: str) -> None:
    """Pass on a beat, unless whoever waits for it was killed: then nobody needs the case either."""
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)
    assert _beats is not None
    _beats.put(message)


def _pass_on(beats: "Queue[str | None]", say: Say) -> None:
    while (message := beats.get()) is not None:
        say(message)
