"""Reader for OBO files, the format of the Gene Ontology and of many others.

Only what makes a hierarchy is read: of each ``[Term]``, its ``id``, ``name``, ``namespace``, ``is_a``,
``relationship``, ``alt_id``, ``is_obsolete`` and ``replaced_by``. Terms refer to each other by id, so a reference to a
term that the file does not define is an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rarenode._io.delimited import read_text
from rarenode.errors import FileFormatError
from rarenode.hierarchy.dag import Hierarchy, Terms
from rarenode.hierarchy.draft import Draft

IS_A = "is_a"
BLANKS = " \t\r\n"
"""What separates values. Other white space of Unicode is a part of them."""


@dataclass
class _Term:
    line: int
    id: str = ""
    name: str = ""
    namespace: str = ""
    parents: list[tuple[int, str, str]] = field(default_factory=list)
    """(line, relation, id of the parent)."""
    alternatives: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    obsolete: bool = False


def read_obo(
    path: Path | str, *, relations: Collection[str] = (IS_A,), namespaces: Collection[str] | None = None
) -> Draft:
    """Read the terms of an OBO file as a hierarchy in the making.

    Nodes are ids; ``titles`` are the terms' names. Obsolete terms are not nodes: one that is replaced by another term
    is an alias of that, as is an alternative id.

    Args:
        path: the file, gzipped or not.
        relations: which relations lead from a term to its parents: ``is_a``, ``part_of``, ...
        namespaces: only the terms of these; None: all. Edges to terms of other namespaces are dropped.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: the file is malformed; or it has no term of a namespace, or no edge of a relation.
    """
    path = Path(path)
    terms, default_namespace = _read_terms(path)
    current = {term.id: term for term in terms if not term.obsolete}
    for term in current.values():
        term.namespace = term.namespace or default_namespace
    _check_choices(path, current, relations, namespaces)
    kept = [key for key, term in current.items() if namespaces is None or term.namespace in namespaces]
    there = set(kept)
    aliases = _aliases(path, terms)
    draft = Draft(path)
    edges: set[tuple[str, str]] = set()
    for key in kept:
        draft.add(current[key].line, key)
        for line, relation, named in current[key].parents:
            if relation not in relations:
                continue
            parent = aliases.get(named, named)
            if parent not in current:
                problem = f"{key} has the parent {named!r}, which is no term of this file, or obsolete"
                raise FileFormatError(path, line, problem)
            if parent in there and (parent, key) not in edges:  # one may be above the other by several relations
                edges.add((parent, key))
                draft.edges.append((line, parent, key))

    def make_terms(hierarchy: Hierarchy) -> Terms:
        return Terms(
            titles=tuple(current[node].name or node for node in hierarchy.nodes),
            namespaces=tuple(current[node].namespace for node in hierarchy.nodes),
            aliases={other: node for other, node in aliases.items() if node in there},
            obsolete=frozenset(term.id for term in terms if term.obsolete),
            excluded=frozenset(current) - there | {other for other, node in aliases.items() if node not in there},
        )

    draft.make_terms = make_terms
    return draft


def _aliases(path: Path, terms: list[_Term]) -> dict[str, str]:
    """Alternative ids, and obsolete ids with one replacement, each with the current term that it stands for."""
    current = {term.id for term in terms if not term.obsolete}
    aliases: dict[str, str] = {}
    for term in terms:
        for other in () if term.obsolete else term.alternatives:
            if aliases.setdefault(other, term.id) != term.id:
                problem = f"{other!r} is an alternative id of {aliases[other]!r} and of {term.id!r}; remove one of them"
                raise FileFormatError(path, term.line, problem)
    replaced = {term.id: term for term in terms if term.obsolete and len(term.replaced_by) == 1}
    for term in replaced.values():
        node, steps = term.replaced_by[0], 0
        while node in replaced and steps < len(replaced):  # a replacement may have been replaced as well
            node, steps = replaced[node].replaced_by[0], steps + 1
        node = aliases.get(node, node)
        if node in current:
            aliases.update((other, node) for other in (term.id, *term.alternatives))
    return {other: node for other, node in aliases.items() if other not in current}


def _check_choices(
    path: Path, terms: dict[str, _Term], relations: Collection[str], namespaces: Collection[str] | None
) -> None:
    if not terms:
        raise FileFormatError(path, None, "it has no [Term] that is not obsolete")
    there = {relation for term in terms.values() for _, relation, _ in term.parents}
    unknown = sorted(set(relations) - there - {IS_A})
    if unknown:
        known = ", ".join(sorted(there | {IS_A}))
        raise FileFormatError(path, None, f"no term has the relation {unknown[0]!r}; there are {known}")
    there = {term.namespace for term in terms.values()}
    unknown = sorted(set(namespaces or ()) - there)
    if unknown:
        known = ", ".join(sorted(name for name in there if name)) or "none"
        raise FileFormatError(path, None, f"no term is in the namespace {unknown[0]!r}; there are: {known}")


def _read_terms(path: Path) -> tuple[list[_Term], str]:
    """All terms, and the namespace of those that name none."""
    terms: dict[str, _Term] = {}
    default_namespace = ""
    term: _Term | None = None
    in_header = True
    for number, line in _lines(path):
        if line.startswith("["):
            _finish(path, term, terms)
            term = _Term(number) if line.startswith("[Term]") else None
            in_header = False
            continue
        tag, colon, value = line.partition(":")
        if not colon:
            raise FileFormatError(path, number, f"expected 'tag: value' or a stanza such as [Term], got {line[:60]!r}")
        value = value.strip(BLANKS)
        if term is not None:
            _set(path, number, term, tag, value)
        elif in_header and tag == "default-namespace":
            default_namespace = value
    _finish(path, term, terms)
    return list(terms.values()), default_namespace


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        text = line.strip(BLANKS)
        if text and not text.startswith("!"):
            yield number, text


def _finish(path: Path, term: _Term | None, terms: dict[str, _Term]) -> None:
    if term is None:
        return
    if not term.id:
        raise FileFormatError(path, term.line, "this [Term] has no id")
    if term.id in terms:
        problem = f"the term {term.id!r} is already defined in line {terms[term.id].line}"
        raise FileFormatError(path, term.line, problem)
    terms[term.id] = term


def _set(path: Path, number: int, term: _Term, tag: str, value: str) -> None:
    match tag:
        case "id":
            if term.id:
                raise FileFormatError(path, number, f"this [Term] already has the id {term.id!r}")
            term.id = _reference(value)
        case "name":
            term.name = _unescaped(_BEHIND.sub("", value).strip(BLANKS))
        case "namespace":
            term.namespace = _reference(value)
        case "is_a":
            if not _reference(value):
                raise FileFormatError(path, number, "expected 'is_a: id', got no id")
            term.parents.append((number, IS_A, _reference(value)))
        case "relationship":
            relation, _, parent = value.partition(" ")
            if not _reference(parent):
                raise FileFormatError(path, number, f"expected 'relationship: relation id', got {value[:60]!r}")
            term.parents.append((number, relation, _reference(parent)))
        case "alt_id":
            term.alternatives.append(_reference(value))
        case "is_obsolete":
            term.obsolete = _reference(value).lower() == "true"
        case "replaced_by":
            term.replaced_by.append(_reference(value))


def _reference(value: str) -> str:
    """An id without the comment, ``! name``, and modifiers, ``{...}``, behind it."""
    return _unescaped(_BLANK.split(value.strip(BLANKS), maxsplit=1)[0])


_BLANK = re.compile(f"[{BLANKS}]")
_BEHIND = re.compile(rf"([{BLANKS}]+\{{[^{{}}]*\}})?([{BLANKS}]+!.*)?$")
"""Modifiers and a comment behind a value."""
_ESCAPED = {"n": "\n", "t": "\t", "W": " ", "r": "\r"}


def _unescaped(value: str) -> str:
    r"""A value as it is meant: ``\W`` is a blank, ``\:`` a colon, ...

    >>> _unescaped(r"a\Wb\:c")
    'a b:c'
    """
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), value)


def escaped(value: str, *, blanks: bool = True) -> str:
    """A value as an OBO file has it: special characters are escaped and, as in an id, blanks."""
    named = {meant: f"\\{letter}" for letter, meant in _ESCAPED.items() if blanks or meant != " "}
    return "".join(named.get(each, f"\\{each}" if each in "\\!{}" else each) for each in value)
