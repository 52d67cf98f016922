"""``python -m rarenode`` is the command line."""

from rarenode.cli import main

main()
