"""`Hierarchy`: a frozen DAG of named nodes in canonical order, with label matrices over its nodes."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import HierarchyError, NotClosedError, UnknownLabelError
from rarenode.hierarchy.construction import Order, order_nodes, order_paths
from rarenode.hierarchy.labels import (
    Labels,
    as_array,
    as_label_matrix,
    as_sparse_labels,
    close_sparse,
    first_gap,
    is_sparse,
    sparse_labels,
)

MOST_CHARACTERS_TO_COMPARE = 200_000  # a suggestion must not make an error slow

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Terms:
    """What an ontology says of its nodes besides the edges."""

    titles: tuple[str, ...]
    """For each node, in column order, its name for people."""
    namespaces: tuple[str, ...] | None = None
    """For each node, the part of the ontology that it belongs to, such as biological_process."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other ids, each with the node that it stands for: alternative ids, and obsolete ones that were replaced."""
    obsolete: frozenset[str] = frozenset()
    """Ids that no longer stand for a node; a few are aliases."""
    excluded: frozenset[str] = frozenset()
    """Ids of terms that were left out on purpose, such as those of other namespaces. As labels they are ignored."""


class Hierarchy:
    """A frozen directed acyclic graph of named nodes.

    Columns (the order of ``nodes``) are canonical: by depth, then by name. Equal hierarchies have equal columns
    whatever the order of the input, and every edge leads from a lower column to a higher one.

    >>> hierarchy = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("pet", "dog")])
    >>> hierarchy.nodes
    ('animal', 'pet', 'cat', 'dog')
    >>> hierarchy.ancestors("dog")
    ('animal', 'pet')
    >>> hierarchy.close(hierarchy.encode([["cat"]])).astype(int)
    array([[1, 0, 1, 0]])
    """

    nodes: tuple[str, ...]
    """Names, in column order."""
    index: Mapping[str, int]
    """From a name to its column."""
    depth: NDArray[np.int64]
    """For each node, the length of the longest path from a root (read-only)."""
    edge_parents: NDArray[np.int64]
    """The parent's column of each edge, sorted by parent, then child (read-only)."""
    edge_children: NDArray[np.int64]
    """The child's column of each edge, in the order of ``edge_parents`` (read-only)."""

    terms: Terms | None
    """Names for people, namespaces and other ids of the nodes, where there are any. Equality and fingerprint do not
    depend on them."""

    def __init__(self, order: Order, terms: Terms | None = None) -> None:
        """Use `from_edges`, `from_paths` or `read_hierarchy`; they put nodes into canonical order."""
        frozen: dict[str, object] = {
            "nodes": order.nodes,
            "index": MappingProxyType({name: column for column, name in enumerate(order.nodes)}),
            "depth": _read_only(order.depth),
            "edge_parents": _read_only(order.parents),
            "edge_children": _read_only(order.children),
            "terms": terms,
        }
        self.__dict__.update(frozen)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> Self:
        """Build from (parent, child) pairs; ``nodes`` adds nodes that have no edge.

        Raises:
            HierarchyError: an edge is not a pair of names, joins a node to itself, or is repeated.
            CycleError: the edges form a cycle; the message prints it.
        """
        return cls(order_nodes(edges, nodes))

    @classmethod
    def from_paths(cls, paths: Iterable[str], separator: str | None = None) -> Self:
        """Build a tree from paths such as ``"a > b > c"``. Each prefix of a path is a node, named by the whole prefix.

        Args:
            paths: one text for each path.
            separator: what separates the steps of a path. None means ``" > "``, and refuses paths of which none
                contains that and some contain another common separator; a separator that is given is used as it is.

        Raises:
            HierarchyError: a path has an empty step, or the separator seems to be another one.

        >>> Hierarchy.from_paths(["a > b > c", "a > d"]).nodes
        ('a', 'a > b', 'a > d', 'a > b > c')
        >>> Hierarchy.from_paths(["a/b", "a/c"], separator="/").nodes
        ('a', 'a/b', 'a/c')
        """
        order, titles = order_paths(paths, separator)
        return cls(order, Terms(titles))

    def with_terms(self, terms: Terms | None) -> Self:
        """The same hierarchy, with names, namespaces and other ids for its nodes.

        Raises:
            HierarchyError: there are not as many titles or namespaces as nodes, or an alias stands for no node.
        """
        if terms is not None:
            for what, values in (("titles", terms.titles), ("namespaces", terms.namespaces)):
                if values is not None and len(values) != len(self):
                    raise HierarchyError(f"there are {len(values)} {what} for {len(self)} nodes")
            stray = next((node for node in terms.aliases.values() if node not in self.index), None)
            if stray is not None:
                raise HierarchyError(f"an alias stands for {stray!r}, which is not a node")
        return type(self)(Order(self.nodes, self.depth, self.edge_parents, self.edge_children), terms)

    @property
    def titles(self) -> tuple[str, ...]:
        """For each node, its name for people: of a path its last step, of an ontology's id the term's name.

        >>> Hierarchy.from_paths(["Biota > Corals"]).titles
        ('Biota', 'Corals')
        """
        return self.nodes if self.terms is None else self.terms.titles

    # --- shape ---------------------------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) names, sorted by the parent's column, then the child's."""
        return tuple(
            (self.nodes[p], self.nodes[c])
            for p, c in zip(self.edge_parents.tolist(), self.edge_children.tolist(), strict=True)
        )

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Names of the nodes without a parent."""
        return tuple(name for name, depth in zip(self.nodes, self.depth.tolist(), strict=True) if depth == 0)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Names of the nodes without a child."""
        inner = np.zeros(len(self), dtype=bool)
        inner[self.edge_parents] = True
        return tuple(self.nodes[i] for i in np.flatnonzero(~inner).tolist())

    @cached_property
    def is_tree(self) -> bool:
        """Whether no node has two parents. Several roots are allowed."""
        return len(np.unique(self.edge_children)) == len(self.edge_children)

    def parents(self, name: str) -> tuple[str, ...]:
        """The nodes directly above, in column order."""
        return self._names(self._above[self._column(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """The nodes directly below, in column order."""
        return self._names(self._below[self._column(name)])

    def ancestors(self, name: str) -> tuple[str, ...]:
        """All nodes above, the node itself excluded, in column order."""
        return self._names(_reach(self._column(name), self._above))

    def descendants(self, name: str) -> tuple[str, ...]:
        """All nodes below, the node itself excluded, in column order."""
        return self._names(_reach(self._column(name), self._below))

    # --- labels --------------------------------------------------------------------------------------------------

    @overload
    def encode(self, label_sets: Iterable[Iterable[str]], *, sparse: Literal[False] = False) -> NDArray[np.bool_]: ...

    @overload
    def encode(self, label_sets: Iterable[Iterable[str]], *, sparse: bool) -> Labels: ...

    def encode(self, label_sets: Iterable[Iterable[str]], *, sparse: bool = False) -> Labels:
        """Label sets, one for each row, as a boolean matrix (rows, nodes). Ancestors are not added: see `close`.

        Args:
            label_sets: the names of the nodes of each row.
            sparse: return a scipy CSR array, which costs labels and not cells.
        """
        if isinstance(label_sets, str):
            raise UnknownLabelError("label sets must be a collection of sets, one for each row, not a single string")
        rows: list[int] = []
        columns: list[int] = []
        count = 0
        for row, labels in enumerate(label_sets):
            count = row + 1
            if isinstance(labels, str) or not isinstance(labels, Iterable):
                raise UnknownLabelError(f"row {row}: expected a set of labels, got {labels!r}")
            for label in labels:
                column = self.index.get(label) if isinstance(label, str) else None
                if column is None:
                    raise UnknownLabelError(f"row {row}: {self._unknown(label)}")
                rows.append(row)
                columns.append(column)
        if sparse:
            return sparse_labels(np.array(rows, dtype=np.int64), np.array(columns), (count, len(self)))
        Y = np.zeros((count, len(self)), dtype=np.bool_)
        Y[rows, columns] = True
        return Y

    def decode(self, Y: Any) -> list[frozenset[str]]:
        """The set of labels of each row of a label matrix; the inverse of `encode`."""
        labels = as_label_matrix(Y, self.nodes)
        return [frozenset(self._names(np.flatnonzero(row).tolist())) for row in labels]

    @overload
    def close(self, Y: NDArray[Any]) -> NDArray[Any]: ...

    @overload
    def close(self, Y: Any) -> Labels: ...

    def close(self, Y: Any) -> Labels:
        """``Y`` with all ancestors of its labels added, as an array of the same dtype; sparse labels stay sparse."""
        if is_sparse(Y):
            return close_sparse(as_sparse_labels(Y, self.nodes), self.edge_parents, self.edge_children)
        labels = as_label_matrix(Y, self.nodes)
        closed = labels.T.copy()  # nodes first: a level is then a few contiguous rows
        for parents, starts, children in self.levels_upwards:
            closed[parents] |= np.logical_or.reduceat(closed[children], starts, axis=0)
        return np.ascontiguousarray(closed.T).astype(as_array(Y).dtype, copy=False)

    def is_closed(self, Y: Any) -> bool:
        """Whether every label in ``Y`` comes with all its ancestors."""
        return first_gap(self._labels(Y), self.edge_parents, self.edge_children) is None

    def require_closed(self, Y: Any) -> Labels:
        """``Y`` as booleans if it is closed, else an error that names the row, the node and its missing parent.

        Sparse labels stay sparse.
        """
        labels = self._labels(Y)
        gap = first_gap(labels, self.edge_parents, self.edge_children)
        if gap is not None:
            row, child, parent = gap
            raise NotClosedError(
                f"row {row} has the label {self.nodes[child]!r} but not its parent {self.nodes[parent]!r}; "
                "Hierarchy.close adds the ancestors of every label"
            )
        return labels

    def sum_over_descendants(self, values: NDArray[Number]) -> NDArray[Number]:
        """For each node, the sum of ``values`` over the node and its distinct descendants.

        The sum of a node with one parent is added to that parent, so a tree costs its edges. Above a node with several
        parents, paths may meet again and must not count twice: its sum is added to each of its ancestors directly.
        """
        sums = np.array(values)
        if sums.shape != (len(self),):
            raise HierarchyError(
                f"expected one value for each of {counted(len(self), 'node')}, got the shape {sums.shape}"
            )
        several_parents = []
        for column in range(len(self) - 1, -1, -1):
            parents = self._above[column]
            if len(parents) == 1:
                sums[parents[0]] += sums[column]
            elif parents:
                several_parents.append((column, sums[column]))
        for column, subtotal in several_parents:
            sums[_reach(column, self._above)] += subtotal
        return sums

    # --- identity ------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the content: the same for equal hierarchies, whatever the order of the input."""
        content = [self.nodes, self.edge_parents.tolist(), self.edge_children.tolist()]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def __repr__(self) -> str:
        shape = "tree" if self.is_tree else "DAG"
        deepest = int(self.depth.max()) if len(self) else 0
        edges = counted(len(self.edge_parents), "edge")
        return f"<Hierarchy: {shape} of {counted(len(self), 'node')} and {edges}, depth {deepest}>"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a hierarchy is frozen; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a hierarchy is frozen; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only mapping cannot be pickled; the order is enough to rebuild it.
        return type(self), (Order(self.nodes, self.depth, self.edge_parents, self.edge_children), self.terms)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    # --- internals --------------------------------------------------------------------------------------------------

    def _labels(self, Y: Any) -> Labels:
        return as_sparse_labels(Y, self.nodes) if is_sparse(Y) else as_label_matrix(Y, self.nodes)

    @cached_property
    def _above(self) -> list[list[int]]:
        """The parents' columns of each node."""
        above: list[list[int]] = [[] for _ in self.nodes]
        for parent, child in zip(self.edge_parents.tolist(), self.edge_children.tolist(), strict=True):
            above[child].append(parent)
        return above

    @cached_property
    def _below(self) -> list[list[int]]:
        """The children's columns of each node."""
        below: list[list[int]] = [[] for _ in self.nodes]
        for parent, child in zip(self.edge_parents.tolist(), self.edge_children.tolist(), strict=True):
            below[parent].append(child)
        return below

    @cached_property
    def families(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns of the nodes that have children, and where the edges of each begin, with an end at the last.

        The children of ``parents[i]`` are ``edge_children[starts[i]:starts[i + 1]]``.
        """
        parents, starts = np.unique(self.edge_parents, return_index=True)
        starts = np.append(starts, len(self.edge_parents))
        return _read_only(parents), _read_only(starts)

    @cached_property
    def levels_upwards(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """(parents, starts, children) for each depth of parents, the deepest first.

        ``children[starts[i]:starts[i + 1]]`` are the children of ``parents[i]``. All deeper levels come before, so
        whole-array code can walk the graph from the leaves up without a loop over nodes.
        """
        parents, starts = self.families
        # Columns are sorted by depth, so each level is one slice of the parents and one slice of the edges.
        bounds = np.append(np.unique(self.depth[parents], return_index=True)[1], len(parents)).tolist()
        levels = []
        for first, last in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
            begin, end = starts[first], starts[last]
            level_starts = _read_only(starts[first:last] - begin)
            levels.append((parents[first:last], level_starts, self.edge_children[begin:end]))
        return levels

    def _column(self, name: str) -> int:
        column = self.index.get(name) if isinstance(name, str) else None
        if column is None:
            raise UnknownLabelError(self._unknown(name))
        return column

    def _names(self, columns: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.nodes[column] for column in columns)

    def _unknown(self, label: object) -> str:
        searchable = isinstance(label, str) and len(label) * len(self) <= MOST_CHARACTERS_TO_COMPARE
        near = difflib.get_close_matches(str(label), self.nodes, n=1) if searchable else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"label {label!r} is not one of the hierarchy's {counted(len(self), 'node')}{hint}"


def _read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array


def _reach(start: int, neighbours: list[list[int]]) -> list[int]:
    """All columns that can be reached from ``start`` in one step or more, sorted."""
    found: set[int] = set()
    waiting = list(neighbours[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(neighbours[node])
    return sorted(found)
