"""The command line: parses, asks `jobs.service`, prints. One file for each group of verbs."""

from headgate.cli.app import main

__all__ = ["main"]
