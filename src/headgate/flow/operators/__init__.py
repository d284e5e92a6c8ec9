"""The nodes of a graph as plain values: operators, windows, aggregates and columns."""
