"""`printable`: text from files and data, made safe to show; and `storable`: made fit for a file.

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


def storable(text: str) -> str:
    r"""The text as it is, but for halves of characters, which no file can hold.

    >>> storable("a\ud800")
    'a\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
