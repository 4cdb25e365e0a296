"""What a partitioner cannot do without, for tests that run all of them."""

import numpy as np

from fastpart.partitioners import needs_splits


def needed(name, n):
    """Return the arguments beside graph and k that the partitioner needs for n vertices."""
    return {"splits": {"train": np.arange(0, n, 3), "val": np.arange(1, n, 9)}} if needs_splits(name) else {}
