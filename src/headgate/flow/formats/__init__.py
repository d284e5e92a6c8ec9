"""The formats of records, as values."""
