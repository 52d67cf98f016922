"""The kinds of field that `Settings` has."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

MOST = 1e30
"""Larger numbers would leave float32, in which networks are trained, no room to compute with them."""


def _computable(value: float) -> float:
    if value > MOST:
        raise ValueError(f"it should be at most {MOST:g}")
    return value


Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0), AfterValidator(_computable)]
Positive = Annotated[float, Field(gt=0), AfterValidator(_computable)]


def setting(default: Any, group: str, *, main: bool = False) -> Any:
    """A field of `Settings`: its group in the documentation, and whether it is among the main ones."""
    return Field(default, json_schema_extra={"group": group, "main": main})
