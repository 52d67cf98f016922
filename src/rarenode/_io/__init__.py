"""What touches files and terminals: atomic writes, locks, named arrays, printable text."""
