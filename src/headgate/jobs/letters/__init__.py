"""Dead letters: what they say, which were replayed, and the way back of their records."""
