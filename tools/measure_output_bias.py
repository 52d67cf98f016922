"""Does a network rank better if the biases of its output begin with the log odds of each node's share of the rows?

    RARENODE_DATA=folder python tools/measure_output_bias.py [DATASET ...]

The network of the preset ``best`` is trained on the training rows of a dataset with ``output_bias`` random and prior,
and ranks the validation rows, which also stop it. Test rows are not used.
"""

from __future__ import annotations

import argparse
import warnings

from rarenode.config import Settings
from rarenode.data.sources import load_dataset
from rarenode.metrics import macro_average_precision, summary
from rarenode.training import train_model

DATASETS = ("cellcycle_FUN", "gasch1_FUN", "seq_FUN", "cellcycle_GO")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", default=DATASETS, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| dataset | seed | output_bias | epochs | AP | macro AP |\n|---|---|---|---|---|---|")
    for name in arguments.datasets:
        splits = load_dataset(name)
        assert splits.valid is not None  # the datasets above have some
        train, valid = splits.train.with_labels_only(), splits.valid.with_labels_only()
        for seed in range(arguments.seeds):
            for bias in ("random", "prior"):
                model = train_model(train, Settings(model="mlp", output_bias=bias, seed=seed, n_jobs=1), valid=valid)
                probs = model.predict_proba(valid.X)
                ap = summary(valid.Y, probs, scored=valid.scored).ap
                macro = macro_average_precision(valid.Y[:, valid.scored], probs[:, valid.scored])
                print(f"| {name} | {seed} | {bias} | {len(model.history)} | {100 * ap:.2f} | {100 * macro:.2f} |")


if __name__ == "__main__":
    main()
