"""Programs for those who work on rarenode; `make help` lists them."""
