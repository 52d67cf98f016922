"""Reader for GAF 2.x files, the Gene Ontology's annotations: which gene product has which term, and how that is known.

A line has 17 columns separated by tabs (15 in the earliest version). Used here are the object's id (2) and symbol (3),
the qualifier (4), the term (5), the evidence code (7) and the aspect (9). A qualifier ``NOT`` says that the gene
product does not have the term, and so none of the term's descendants.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rarenode._io.delimited import read_text
from rarenode.data.readers.frames import Table
from rarenode.data.readers.labels import Stated, match_ids
from rarenode.errors import ArgumentError, FileFormatError

FEWEST_COLUMNS = 15
ID, SYMBOL, QUALIFIER, TERM, EVIDENCE, ASPECT = 1, 2, 3, 4, 6, 8
EVIDENCE_CODES = frozenset(
    [
        "EXP",
        "IDA",
        "IPI",
        "IMP",
        "IGI",
        "IEP",
        "HTP",
        "HDA",
        "HMP",
        "HGI",
        "HEP",
        "IBA",
        "IBD",
        "IKR",
        "IRD",
        "ISS",
        "ISO",
        "ISA",
        "ISM",
        "IGC",
        "RCA",
        "TAS",
        "NAS",
        "IC",
        "ND",
        "IEA",
    ]
)
"""Those of the Gene Ontology; a file may have others."""
ASPECTS = {"P": "biological_process", "F": "molecular_function", "C": "cellular_component"}


def from_gaf(
    table: Table,
    ids: Sequence[str],
    path: Path,
    *,
    evidence: Collection[str] | None = None,
    exclude_evidence: Collection[str] = (),
    aspects: Collection[str] | None = None,
) -> Stated:
    """Annotations of the rows of a table, whose ids are the objects' ids or else their symbols.

    Args:
        table: the rows.
        ids: of the rows.
        path: the GAF file, gzipped or not.
        evidence: only annotations with these evidence codes, such as IDA; None: all.
        exclude_evidence: no annotations with these, such as IEA.
        aspects: only annotations of these: P, F or C; None: all.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is malformed; the message names the line.
        ArgumentError: there is no such evidence code or aspect, or no annotation is left.
    """
    unknown = sorted(set(aspects or ()) - set(ASPECTS))
    if unknown:
        choices = ", ".join(f"{letter} ({name})" for letter, name in ASPECTS.items())
        raise ArgumentError(f"there is no aspect {unknown[0]!r}; choose among {choices}")
    annotations = []
    codes: set[str] = set()
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip() or line.startswith("!"):
            continue
        fields = line.rstrip("\r").split("\t")
        if len(fields) < FEWEST_COLUMNS:
            problem = f"expected {FEWEST_COLUMNS} to 17 columns separated by tabs, got {len(fields)}"
            raise FileFormatError(path, number, problem)
        if not fields[ID] or not fields[TERM]:
            raise FileFormatError(path, number, "the object's id (column 2) or the term (column 5) is blank")
        if fields[ASPECT] not in ASPECTS:
            raise FileFormatError(path, number, f"expected the aspect P, F or C in column 9, got {fields[ASPECT]!r}")
        codes.add(fields[EVIDENCE])
        if (
            (evidence is not None and fields[EVIDENCE] not in evidence)
            or fields[EVIDENCE] in exclude_evidence
            or (aspects is not None and fields[ASPECT] not in aspects)
        ):
            continue
        absent = "NOT" in (each.strip().upper() for each in fields[QUALIFIER].split("|"))
        annotations.append((number, fields[ID], fields[SYMBOL], fields[TERM], 0 if absent else 1))
    if not annotations:
        if not codes:
            raise FileFormatError(path, None, "it has no annotations")
        raise ArgumentError(f"{path}: no annotation is left; it has the evidence codes {', '.join(sorted(codes))}")
    odd = sorted({*(evidence or ()), *exclude_evidence} - codes - EVIDENCE_CODES)
    if odd:
        raise ArgumentError(f"there is no evidence code {odd[0]!r}; {path} has {', '.join(sorted(codes))}")
    known = set(ids)
    by_id = sum(key in known for _, key, _, _, _ in annotations)
    by_symbol = sum(symbol in known for _, _, symbol, _, _ in annotations)
    use_symbol = by_symbol > by_id
    return match_ids(
        table, ids, path, ((n, symbol if use_symbol else key, term, v) for n, key, symbol, term, v in annotations)
    )
