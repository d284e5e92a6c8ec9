"""The topics of a log and of a flow: listed, read, created."""
