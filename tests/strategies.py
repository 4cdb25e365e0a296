"""What property tests draw, and how records become a raw file."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def edge_lists(draw, max_n=12, max_m=50, loops=True, dups=True):
    """Return (n, edges): uint32 of shape (m, 2), ids below n; vertices may be isolated, the graph may be empty.

    ``loops`` and ``dups`` say whether self-loops and parallel records (in either direction) may occur.
    """
    n = draw(st.integers(0, max_n))
    ids = st.integers(0, max(n - 1, 0))
    records = st.tuples(ids, ids)
    if not loops:
        records = records.filter(lambda record: record[0] != record[1])
    most = max_m if n > (not loops) else 0
    unique_by = None if dups else frozenset
    edges = draw(st.lists(records, max_size=most, unique_by=unique_by) if most else st.just([]))
    return n, np.array(edges, dtype=np.uint32).reshape(-1, 2)


def configs():
    """Return what SPRING may be given besides the edges."""
    return st.fixed_dictionaries(
        {
            "k": st.integers(1, 16),
            "balance": st.sampled_from([1, 1.0, 1.05, 1.3, 2.0, 1e308]),
            "seed": st.sampled_from([0, 1, 2**64 - 1]),
            "passes": st.integers(1, 3),
            "batch": st.sampled_from([None, 1, 2, 7, 50, 10**12]),
            "strict": st.booleans(),
        }
    )


@st.composite
def assignments(draw, size, max_k=200):
    """Return (parts, k): one part in 0..k-1 for each of ``size`` items; most parts may be empty."""
    k = draw(st.integers(1, max_k))
    return draw(st.lists(st.integers(0, k - 1), min_size=size, max_size=size)), k


def raw(path, records, dtype="<u4"):
    """Write records as a raw edge file."""
    path.write_bytes(np.asarray(records).astype(dtype).tobytes())
    return path
