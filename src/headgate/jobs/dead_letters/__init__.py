"""Dead letters: listed, counted, and replayed to their topics."""
