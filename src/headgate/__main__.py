"""Runs the command line: `python -m headgate`."""

from headgate.cli import main

main()
