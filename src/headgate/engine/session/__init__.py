"""The Spark session of an attempt, on a master, with one driver for a checkpoint."""
