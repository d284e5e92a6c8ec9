"""The start of a job: what it resumes from, in the foreground or the background."""
