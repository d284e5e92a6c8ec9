"""The folder of an embedded topic on disk: its files, their order, their records."""
