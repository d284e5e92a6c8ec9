"""Checks of nodes and of a whole flow."""
