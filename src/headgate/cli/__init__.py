"""The command line: parses, asks a `Home`, prints. One file for each group of commands."""

from headgate.cli.app import main

__all__ = ["main"]
