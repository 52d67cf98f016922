"""`printable`: text from files and data, made safe to show.

Names of nodes, datasets and methods come from anywhere. A control character among them could move the cursor, change
the title of a terminal, or break the line of a table.
"""

from __future__ import annotations


def printable(text: object) -> str:
    r"""The text, with a blank for each character that cannot be shown.

    >>> printable("a\x1b[2Jb\n")
    'a [2Jb '
    """
    return "".join(character if character.isprintable() else " " for character in str(text))
