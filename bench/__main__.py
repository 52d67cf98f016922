"""Everything that is measured, in one run.

    make bench

prints tables and writes build/bench.json. Every figure comes from a process of its own, one after the other; peak
memory is what that process needs beyond its inputs, the model and its optimiser included. Ratios carry over to other
machines, seconds do not.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench import decisions, images, neighbours, objective, rivals, side_by_side, training

RESULTS = Path("build/bench.json")


def main() -> None:
    records = []
    for part in (objective, training, side_by_side, decisions, neighbours, images, rivals):
        measured = part.run()
        part.show(measured)
        records += measured
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")
    print(f"also in {RESULTS}")


if __name__ == "__main__":
    main()
