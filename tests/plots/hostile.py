"""Names that mean harm, or that a drawing could stumble over."""

from __future__ import annotations

HOSTILE = (
    "$\\frac{1}{0}$ and $x_$ \\$",
    "</title></svg><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload='alert(1)' x=\"",
    "]]> & &amp; &#0; <!-- --",
    "a\x00b\x1bc\x7f\ufffe\uffff",
    "\ud800 lone \udfff",
    "\u202eright to left\u202c \u05d0\u05d1\u05d2",
    "x" * 10_000,
    "\U0001f98a " * 300,
    "_private",
    "%s {0} \\n",
)
