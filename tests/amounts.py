"""How many examples the property tests of the filter language take.

Everything routes on covers and normal forms, so their laws are tested with more examples than others: many
in `make test`, very many in `make soak-filters`, few while one works.
"""

import os

from hypothesis import settings

OFTEN = {"everyday": 25, "thorough": 500, "soak": 1_000, "filters": 20_000}

often = settings(max_examples=OFTEN[os.environ.get("HYPOTHESIS_PROFILE", "everyday")])
