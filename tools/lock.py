"""Resolve pyproject.toml into requirements.lock: install it into an empty environment, and write down what came.

The lock file has the package, its development tools and all extras, which the tests use. The release of torch is chosen
here and installed first, so that nothing else gets to choose it; which build of that release (a local version such as
+cpu) is left to the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TORCH = "torch==2.13.0"
EXTRAS = "dev,docs,vision,cluster"
HEAD = f"# Made by `make lock` from pyproject.toml, extras {EXTRAS}; do not edit.\n"


def main() -> None:
    """Write the lock file."""
    project = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", TORCH], check=True)
        subprocess.run([*pip, "install", "--quiet", f"{project}[{EXTRAS}]"], check=True)
        subprocess.run([*pip, "uninstall", "--quiet", "--yes", "rarenode"], check=True)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    pins = re.sub(r"^(torch==[^+\s]+)\+\S+", r"\1", frozen, flags=re.MULTILINE)
    pins = re.sub(r"^torch @ .*$", TORCH, pins, flags=re.MULTILINE)
    (project / "requirements.lock").write_text(HEAD + pins, encoding="utf-8")


if __name__ == "__main__":
    main()
