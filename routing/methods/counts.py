"""What methods count, by names of their own, beside what is counted whatever the method.

A method puts its counts into `Found.counts`; a job adds them up and tells them on `stats`. A name that is not
here is told to nobody.
"""

from collections.abc import Mapping

COUNTS: Mapping[str, tuple[str, str]] = {}
"""Names, each with the method that counts it and what it counts."""
