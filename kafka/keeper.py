"""Keeps a Java process from outliving the process that wanted it.

    owner ──pipe──> keeper ──child──> java

Theory of operation. The owner starts the keeper with a pipe for its standard input and never writes to it
but to say `KILL`. However the owner ends (return, exception, SIGKILL), the system closes its end, the
keeper reads the end of the file, and Java gets SIGTERM and, past a deadline, SIGKILL. Stopping Java on
purpose is the same thing: the owner closes the pipe. The keeper ends when Java has ended.

The keeper leads a session of its own and Java is in it: Ctrl-C at a terminal reaches the owner alone, which
may then finish its work while Kafka is still there, and a closed terminal takes nothing away under it.

Two more ways to lose Java are closed. A child that the owner has forked without exec holds a copy of the
pipe, so the keeper also looks now and then whether it still has the same parent. And if the keeper itself
is killed, Linux kills Java with it (PR_SET_PDEATHSIG); macOS has no such thing, and there a killed keeper
leaves Java behind.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

KILL = b"k"  # the owner's order for an end without a goodbye, as a crash would be
PARENT_CHECK_S = 1.0
KEEPER_GRACE_S = 5  # past Java's deadline, for the keeper's own end
PR_SET_PDEATHSIG = 1


class KeptProcess:
    """The owner's side: a process, as a rule Java, below a keeper, with its output in a file."""

    def __init__(
        self,
        command: Sequence[str],
        output_file: Path,
        stop_deadline_s: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._stop_deadline_s = stop_deadline_s
        with output_file.open("wb") as output:
            self._keeper = subprocess.Popen(
                [sys.executable, "-P", "-m", "branchline.kafka.keeper", str(stop_deadline_s), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                env=env,
            )
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._lifeline = self._keeper.stdin
        with self._keeper.stdout as said:
            line = said.readline().strip()
        self.pid = int(line) if line else None  # nothing, where Java could not even be started

    def is_running(self) -> bool:
        return self._keeper.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As a shell would give it; None while it runs."""
        return self._keeper.poll()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL past the deadline; returns when Java is gone."""
        self._end()

    def kill(self) -> None:
        """SIGKILL at once; returns when Java is gone."""
        if not self._lifeline.closed:
            with contextlib.suppress(BrokenPipeError):  # it has ended by itself
                self._lifeline.write(KILL)
                self._lifeline.flush()
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._lifeline.close()  # the keeper does the rest, just as if we had died
        try:
            self._keeper.wait(self._stop_deadline_s + KEEPER_GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait()


def keep(command: Sequence[str], stop_deadline_s: float) -> int:
    """Run Java until it ends or nobody wants it; its exit code as a shell would give it."""
    owner = os.getppid()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    asked_to_end: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake the wait below
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: asked_to_end.append(number))

    java = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # the keeper's own output is for the process id alone
        # Safe in spite of its name: the keeper has one thread.
        preexec_fn=_die_with_keeper(),
    )
    with contextlib.suppress(BrokenPipeError):  # the owner is gone already: the pipe will say so
        print(java.pid, flush=True)

    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while java.poll() is None:
            ready = [key.fd for key, _ in selector.select(PARENT_CHECK_S)]
            if wake_read in ready:
                os.read(wake_read, 1024)
            if sys.stdin.fileno() in ready:
                if os.read(sys.stdin.fileno(), 1) == KILL:
                    java.kill()
                    java.wait()
                else:
                    _stop(java, stop_deadline_s)
            elif asked_to_end or os.getppid() != owner:
                _stop(java, stop_deadline_s)
    code = java.wait()
    return code if code >= 0 else 128 - code


def _stop(java: subprocess.Popen[bytes], deadline_s: float) -> None:
    java.terminate()
    try:
        java.wait(deadline_s)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def _die_with_keeper() -> Callable[[], None] | None:
    """What Java's process does between fork and exec; the setting outlives the exec.

    The signal is SIGKILL, since nobody is left to insist when SIGTERM is not enough; Kafka recovers from
    it. The owner does not tie the keeper to itself like this: the signal comes when the *thread* that
    forked ends, and an owner may well start Kafka from a thread that does not last.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    keeper = os.getpid()

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:  # it died before the setting was there
            os._exit(1)

    return before_exec


if __name__ == "__main__":
    sys.exit(keep(sys.argv[2:], float(sys.argv[1])))
