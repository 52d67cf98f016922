from __future__ import annotations

from tests.commands import catalogued

__all__ = ["catalogued"]
