"""What is known of a run: its lineage, how far it came, what it wrote."""
