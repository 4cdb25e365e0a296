"""Where rows of features come from: any source of the same rows gives the same batches."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fastpart.loading.rows import RowSource  # noqa: E402
from loaded import stored  # noqa: E402
from test_resident import FANOUTS, SIZE, same  # noqa: E402


class Dictionary:
    """Rows of a dictionary."""

    def __init__(self, parts):
        features = np.concatenate([part.features for part in parts.parts])
        self.dtype, self.row_shape = features.dtype, features.shape[1:]
        self._rows = dict(enumerate(features))

    def rows(self, ids):
        return np.array([self._rows[row] for row in ids.tolist()], self.dtype).reshape(-1, *self.row_shape)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("rows") / "parts", 3)


@pytest.mark.parametrize("given", [{}, {"scheduled": True}, {"rank": 1, "world_size": 3, "cache": 0.3}])
def test_rows_of_a_source_of_your_own_give_the_same_batches(parts, given):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3, **given}
    files, other = parts.loader(**given), parts.loader(**given)
    source: RowSource = Dictionary(parts)
    other.fetching.here = source
    same(files, other)
    assert files.read_counts() == other.read_counts()


def test_rows_of_a_source_of_your_own_stay_on_the_device(parts):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3}
    other = parts.loader(**given)
    other.fetching.here = Dictionary(parts)
    other.keep(torch.device("cpu"), 20 * 6 * 8)
    assert len(other.fetching.resident.index.ids) == 20
    same(parts.loader(**given), other)
