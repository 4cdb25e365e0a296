"""What partitioners and parameters of tests cannot do without."""

import numpy as np
import pytest

from fastpart.partitions.partitioners import needs_splits


def needed(name, n):
    """Return the arguments beside graph and k that the partitioner needs for n vertices."""
    return {"splits": {"train": np.arange(0, n, 3), "val": np.arange(1, n, 9)}} if needs_splits(name) else {}


def needing_torch(names, *with_torch):
    """Return parameters of a test, of which some need torch."""
    return [pytest.param(name, marks=pytest.mark.torch) if name in with_torch else name for name in names]
