"""The audit of a job: which of its records are lost, and which duplicated."""
