"""Read-only views of a job: from its folder, whether it is running or not."""
