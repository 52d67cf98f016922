"""A page as a browser would take it apart. For tests only."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any, NamedTuple


class Element(NamedTuple):
    tag: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """All elements, what scripts and styles hold, and the text that is shown."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self.doctypes: list[str] = []
        self.others: list[str] = []
        """Comments, instructions and declarations."""
        self._inside = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> twice"
        self.elements.append(Element(tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            (self.scripts if self._inside == "script" else self.styles)[-1] += data
        else:
            self.words.append(data)

    def handle_decl(self, decl: str) -> None:
        self.doctypes.append(decl)

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    @property
    def text(self) -> str:
        """The words one after the other, with single blanks."""
        return " ".join(" ".join(self.words).split())

    @property
    def tags(self) -> set[str]:
        return {element.tag for element in self.elements}

    @property
    def data(self) -> Any:
        """What the script works with."""
        return parse_json(self.scripts[0])

    def find(self, tag: str, **attributes: str) -> list[Element]:
        return [
            element
            for element in self.elements
            if element.tag == tag and all(element.attributes.get(name) == value for name, value in attributes.items())
        ]


def parse_json(text: str) -> Any:
    """JSON as a browser reads it, which knows no NaN and no Infinity."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)
