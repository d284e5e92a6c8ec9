"""Tables of PostgreSQL databases."""

from headgate.connectors.postgres.descriptor import Postgres

__all__ = ["Postgres"]
