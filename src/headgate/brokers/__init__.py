"""Brokers for development and tests: real ones, on this machine, in the background."""
