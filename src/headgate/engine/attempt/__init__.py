"""One attempt: its query, its batches and its end."""
