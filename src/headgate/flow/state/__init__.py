"""The state of operators: its columns, and whether older state can still be read."""
