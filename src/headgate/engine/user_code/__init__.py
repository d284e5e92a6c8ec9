"""Functions and modules of the user that run in Spark's processes."""
