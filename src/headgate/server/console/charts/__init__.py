"""The drawings of the console: charts, timelines, the graph of a flow."""
