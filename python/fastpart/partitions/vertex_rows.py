"""Rows of vertices in a folder: features, labels, splits and times."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..core.inputs import known_of
from .part_files import Array, Ids, PartFiles


class VertexRows(PartFiles):
    """One row per inner vertex of a part, or of one type of them. What was not saved is None."""

    first_inner: int = 0
    """Local id of the first of these vertices in the part."""

    @cached_property
    def features(self) -> Array | None:
        """One row per inner vertex. Coded ones are decoded, all of the part."""
        return self._decoded("features", self.num_inner)

    @cached_property
    def halo_features(self) -> Array | None:
        """One row per halo vertex. None unless saved with ``halo_features=True``."""
        return self._decoded("halo_features", self.num_halo)

    @cached_property
    def labels(self) -> Array | None:
        """Class of each inner vertex, int64, -1 = unlabelled, or 0 and 1 as uint8 of shape (num_inner, classes).

        Targets of a regression are float32, of shape (num_inner,) or (num_inner, width), NaN = none.
        """
        return self._labels(self.num_inner)

    @cached_property
    def times(self) -> Ids | None:
        """Time of each inner vertex, int64. The smallest number stands for none."""
        return self._times("times", self.num_inner)

    @cached_property
    def train(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to train on."""
        return self._mask("train")

    @cached_property
    def val(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to validate on."""
        return self._mask("val")

    @cached_property
    def test(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to test on."""
        return self._mask("test")

    def labelled(self, split: str) -> npt.NDArray[np.bool_] | None:
        """Return the mask of the inner vertices of a split that have a label. Without labels, all have."""
        mask: npt.NDArray[np.bool_] | None = getattr(self, split)
        return mask if mask is None or self.labels is None else mask & known_of(self.labels)
