"""Sees to it that Spark's JVM does not outlive the process that started it.

The JVM ends by itself when its owner's pipe closes, but not before its shutdown is through, and with Kafka
gone that can hang for minutes. So a small process waits on a pipe of its own; when the owner is gone,
by whatever means, it gives the JVM some seconds and then ends it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

GRACE_S = 15.0
POLL_S = 0.1


def watch(pid: int) -> subprocess.Popen[bytes]:
    """A watchdog for the process; it ends itself once the process is gone and its input is closed."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "branchline.streaming.watchdog", str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C at a terminal is for the owner
    )


def guard(pid: int) -> None:
    """Wait for the end of the input; then for the process, and end it past the grace time."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + GRACE_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(POLL_S)
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    guard(int(sys.argv[1]))
