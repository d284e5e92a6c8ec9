"""From what users write to nodes: checked, and added to the graph under construction."""
