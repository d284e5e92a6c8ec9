"""Schemas: the columns of rows, their types, and where these are declared."""
