"""`Projection`: sparse features with many columns, such as words or protein domains, along fewer directions.

Each column is divided by its largest absolute value, each row scaled to length 1, and the result projected on the
directions in which training rows vary most (a truncated singular value decomposition, as in latent semantic analysis).
Rows that share rare columns come near each other, a network has fewer weights to learn, and rows never become dense in
all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

OVERSAMPLED, POWERS = 20, 4
"""Directions beyond those that are kept, and power iterations, of the randomised decomposition."""
SMALLEST = 1e-300
"""A column whose values are all smaller is as if they were 0: others divided by them may overflow."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Directions in the space of features, found in training rows.

    >>> X = csr_array(np.eye(4)[[0, 1, 1, 2, 2, 2]])
    >>> projection = Projection.fit(X, 2)
    >>> np.abs(projection.apply(X)).round(3)
    array([[0., 0.],
           [0., 1.],
           [0., 1.],
           [1., 0.],
           [1., 0.],
           [1., 0.]])
    """

    largest: NDArray[np.float64]
    """(columns,): the largest absolute value of each; 1 where all are next to 0."""
    directions: NDArray[np.float32]
    """(columns, components): orthonormal columns."""

    @classmethod
    def fit(cls, X: csr_array, components: int, seed: int = 0) -> Self:
        """Find the directions in sparse training rows without missing values; fewer if there are fewer rows."""
        largest = np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
        largest[largest < SMALLEST] = 1.0
        rows = _scaled(X, largest)
        components = min(components, *rows.shape)
        wide = min(components + OVERSAMPLED, *rows.shape)
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        # Halko, Martinsson and Tropp (2011), algorithm 4.4. Sums of BLAS depend on the number of threads.
        with threadpool_limits(1):
            basis = np.linalg.qr(rows @ rng.standard_normal((rows.shape[1], wide)))[0]
            for _ in range(POWERS):
                basis = np.linalg.qr(rows @ np.linalg.qr(rows.T @ basis)[0])[0]
            directions = np.linalg.svd((rows.T @ basis), full_matrices=False)[0][:, :components]
        return cls(largest, np.ascontiguousarray(directions, dtype=np.float32))

    @property
    def n_columns(self) -> int:
        """Of the features."""
        return int(self.directions.shape[0])

    @property
    def n_components(self) -> int:
        """Of what `apply` returns."""
        return int(self.directions.shape[1])

    def apply(self, X: csr_array) -> NDArray[np.float64]:
        """(rows, components) of sparse rows without missing values. No row depends on another."""
        coordinates: NDArray[np.float64] = _scaled(X, self.largest) @ self.directions.astype(np.float64)
        return coordinates


def _scaled(X: Any, largest: NDArray[np.float64]) -> csr_array:
    """Columns divided by their largest value, rows of length 1; a row of zeros stays as it is."""
    rows = csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    each = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    # Before columns and squares, so that neither overflows or vanishes.
    _divide_by_top(rows, each)
    rows.data /= largest[rows.indices]
    _divide_by_top(rows, each)
    length = np.sqrt(np.bincount(each, rows.data**2, minlength=rows.shape[0]))
    rows.data /= np.where(length > 0, length, 1.0)[each]
    return rows


def _divide_by_top(rows: csr_array, each: NDArray[np.int64]) -> None:
    """Divide rows by their largest absolute value; ``each`` is the row of each number."""
    top = np.zeros(rows.shape[0])
    np.maximum.at(top, each, np.abs(rows.data))
    rows.data /= np.where(top > 0, top, 1.0)[each]
