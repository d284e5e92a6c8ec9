"""The parts of an audit: what is asked of which records, how they are counted, what is told."""
