"""The commands on this machine, and the documentation of errors."""
