"""The disk room: what a checkpoint is on disk. Needs no Spark session."""
