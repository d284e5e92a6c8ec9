"""The commands that show a job, and what it has stored."""
