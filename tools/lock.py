"""Resolve pyproject.toml into the lock files: install it into an empty environment, and write down what came.

``requirements.lock`` has the package, its development tools and the extra ``vision``, which the tests need;
``requirements-extras.lock`` also the extra ``cluster``. The release of torch is chosen here and installed first, so
that nothing else gets to choose it; which build of that release (a local version such as +cpu) is left to the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TORCH = "torch==2.13.0"
LOCKS = {"requirements.lock": "dev,vision", "requirements-extras.lock": "dev,vision,cluster"}
HEAD = "# Made by `make lock` from pyproject.toml, extras {extras}; do not edit.\n"


def main() -> None:
    """Write all lock files."""
    project = Path(__file__).parent.parent
    for name, extras in LOCKS.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = [f"{folder}/bin/python", "-m", "pip"]
            subprocess.run([*pip, "install", "--quiet", TORCH], check=True)
            subprocess.run([*pip, "install", "--quiet", f"{project}[{extras}]"], check=True)
            subprocess.run([*pip, "uninstall", "--quiet", "--yes", "rarenode"], check=True)
            frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
        pins = re.sub(r"^(torch==[^+\s]+)\+\S+", r"\1", frozen, flags=re.MULTILINE)
        pins = re.sub(r"^torch @ .*$", TORCH, pins, flags=re.MULTILINE)
        (project / name).write_text(HEAD.format(extras=extras) + pins, encoding="utf-8")


if __name__ == "__main__":
    main()
