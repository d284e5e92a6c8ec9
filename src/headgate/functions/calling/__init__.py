"""Calls of functions with batches of rows, and their results."""
