"""The supervisor of a job, with what it measures, hears and reports."""
