"""Sparing a worker the search for garbage among all that it remembers.

Spark has a Python worker collect garbage after every task, which looks at every object there is: half a
second where a shard of ten thousand subscriptions is kept warm. What has survived that once is taken out of
the search, at the beginning of the next task. Objects that are in no cycle are freed as ever. For the others,
which are few, everything is searched now and then.

Within a task nothing is searched: a batch of a thousand changes makes so many objects that Python would
search again and again, and find nothing.
"""

import gc

SEARCHED_EVERY = 1_000
"""Tasks after which everything is searched once: minutes, for a pause of half a second at worst."""

_tasks = 0


def spare() -> None:
    """Begin a task: nothing that is there now is searched after it, but once in a while."""
    global _tasks
    _tasks += 1
    gc.disable()
    if _tasks % SEARCHED_EVERY:
        gc.freeze()
    else:
        gc.unfreeze()
