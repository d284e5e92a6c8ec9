"""A local PostgreSQL server."""
