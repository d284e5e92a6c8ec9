"""Python functions of a flow: how they are stored, and the process that calls them. No Spark."""
