"""The watchdog that ends a JVM whose owner died."""

import subprocess
import sys

import pytest
from waiting import wait_until

from branchline.streaming import watchdog

pytestmark = pytest.mark.slow


def test_a_process_that_hangs_is_ended_when_its_owner_is_gone() -> None:
    """Closing the pipe, as the owner's death does, ends what does not end by itself."""
    hanging = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    code = f"from branchline.streaming import watchdog; watchdog.GRACE_S = 0.2; watchdog.guard({hanging.pid})"
    guard = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        assert hanging.poll() is None
        guard.communicate(timeout=20)
        wait_until(lambda: hanging.poll() is not None, 10, "the hanging process is ended")
    finally:
        hanging.kill()
        hanging.wait()


def test_the_watchdog_ends_with_what_it_watches() -> None:
    """Where the process has ended already, closing the pipe is the end of the watchdog too."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert watchdog.watch(done.pid).communicate(timeout=20) == (None, None)
