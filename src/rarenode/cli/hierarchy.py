"""`rarenode hierarchy`: look at a hierarchy, check its file, and convert it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rarenode._io.text import printable
from rarenode.cli.options import Raw, split_names, with_table_options

app = typer.Typer(
    help="""Look at a hierarchy, check its file, and convert it.

    \b
    Formats, recognised by the suffix and the columns of FILE:
      .obo                   an ontology, such as the Gene Ontology
      .json                  nested names, a list of paths, or an object with edges
      columns parent, child  a list of edges
      columns id, parent     a line for each node; the parent of a root is blank
      a column of paths      Biota > Cnidaria > Corals
      a column per level     Biota, Cnidaria, Corals; blank cells end a path
    """,
    no_args_is_help=True,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The hierarchy; may be gzipped.", show_default=False)]
Separator = Annotated[
    str | None,
    typer.Option("--path-separator", metavar="TEXT", help="Separates the steps of paths.", show_default="guessed"),
]
Relations = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="OBO: relations that lead to parents.", show_default="is_a"),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="OBO: only the terms of these.", show_default="all"),
]


@app.command()
def check(
    file: File,
    separator: Separator = None,
    relations: Relations = None,
    namespaces: Namespaces = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find cycles, missing parents, duplicates and other problems, each with its line.

    The exit code is 1 if there is an error, which means that FILE contains no hierarchy, and 0 otherwise.

    \b
    Examples:
      rarenode hierarchy check taxonomy.csv
    """
    from rarenode.hierarchy.draft import check as find_problems  # noqa: PLC0415
    from rarenode.hierarchy.files import read_draft  # noqa: PLC0415

    draft = read_draft(file, separator=separator, **_of_obo(relations, namespaces))
    problems = find_problems(draft)
    wrong = any(problem.severity == "error" for problem in problems)
    tree = None if wrong else draft.build()
    if as_json:
        found = [{"severity": each.severity, "line": each.line, "problem": each.text} for each in problems]
        print(json.dumps({"hierarchy": None if tree is None else _summary(tree), "problems": found}, indent=1))
    else:
        for problem in problems:
            print(f"{file}: {printable(problem)}")
        if tree is not None:
            print(f"{file}: {tree!r}; no problems found" if not problems else f"{file}: {tree!r}")
    if wrong:
        raise typer.Exit(1)


def _of_obo(relations: list[str] | None, namespaces: list[str] | None) -> dict[str, Any]:
    return {
        "relations": split_names(relations) if relations else ("is_a",),
        "namespaces": split_names(namespaces) if namespaces else None,
    }


def _summary(tree: Any) -> dict[str, Any]:
    return {
        "nodes": len(tree),
        "edges": len(tree.edge_parents),
        "roots": list(tree.roots),
        "leaves": len(tree.leaves),
        "depth": int(tree.depth.max(initial=0)),
        "is_tree": tree.is_tree,
    }


@app.command()
@with_table_options(
    "labels", "separator", "path_separator", "id", "evidence", "exclude_evidence", "relations", "namespaces"
)
def show(
    file: File,
    data: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Count the rows of each node in this table.", show_default=False),
    ] = None,
    root: Annotated[str | None, typer.Option(metavar="NODE", help="Only this node and those below it.")] = None,
    depth: Annotated[int | None, typer.Option(metavar="N", help="Only so many levels; default: 200.", min=0)] = None,
    *,
    table: dict[str, Any],
) -> None:
    """Draw the hierarchy, with the number of rows that have each node if a table is given.

    \b
    Examples:
      rarenode hierarchy show taxonomy.csv --depth 2
      rarenode hierarchy show taxonomy.csv --data survey.csv --labels taxa
      rarenode hierarchy show go-basic.obo.gz --root GO:0006281
    """
    from rarenode.data.readers.tables import read_labels  # noqa: PLC0415 (polars takes a tenth of a second to load)
    from rarenode.data.table_options import table_options  # noqa: PLC0415
    from rarenode.hierarchy import read_hierarchy  # noqa: PLC0415
    from rarenode.hierarchy.drawing import draw_tree  # noqa: PLC0415

    how = {name: table[name] for name in ("relations", "namespaces") if name in table}
    tree = read_hierarchy(file, separator=table.get("path_separator"), **how)
    counts = None if data is None else read_labels([data], table_options(table), tree)[1].sum(axis=0)
    for line in draw_tree(tree, counts, root=root, depth=depth):
        print(printable(line))


@app.command()
def convert(
    file: File,
    out: Annotated[Path, typer.Option(metavar="FILE", help="To write: .csv, .tsv, .json or .obo.", show_default=False)],
    separator: Separator = None,
    relations: Relations = None,
    namespaces: Namespaces = None,
    raw: Raw = False,
) -> None:
    """Write a hierarchy in another format.

    In .csv and .tsv a name that a spreadsheet would take for a formula, as it begins with =, +, - or @, gets an
    apostrophe in front, which rarenode removes when it reads the file; --raw leaves names as they are.

    \b
    Examples:
      rarenode hierarchy convert go-basic.obo.gz --out go.csv --namespaces biological_process
      rarenode hierarchy convert paths.csv --out taxonomy.json
    """
    from rarenode.hierarchy import read_hierarchy, write_hierarchy  # noqa: PLC0415

    tree = read_hierarchy(file, separator=separator, **_of_obo(relations, namespaces))
    write_hierarchy(tree, out, raw=raw)
    print(f"{out}: {tree!r}")
