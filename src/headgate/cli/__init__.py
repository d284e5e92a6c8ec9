"""The command line: parses, calls the jobs, prints. One file for each group of commands."""

from headgate.cli.app import main

__all__ = ["main"]
