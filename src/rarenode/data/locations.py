"""Where the datasets are kept on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

ENVIRONMENT_VARIABLE = "RARENODE_DATA"


def data_root(root: Path | str | None = None) -> Path:
    """Return the folder that holds the datasets; it need not exist yet.

    The first of these that is given: ``root``, the environment variable ``RARENODE_DATA``, the user's cache folder.
    """
    chosen = root or os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("rarenode", appauthor=False)
