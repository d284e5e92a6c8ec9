"""Streams and tables: the values that users chain operators on."""
