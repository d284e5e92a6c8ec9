"""The parts of a page: its frame, its widgets, its theme, its formats."""
