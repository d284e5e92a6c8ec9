"""The graph: its nodes and edges, the columns at each port, and its JSON."""
