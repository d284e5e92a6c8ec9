"""State as Parquet files that any tool can read and change."""
