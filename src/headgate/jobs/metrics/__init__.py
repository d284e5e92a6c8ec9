"""What jobs count of themselves for monitoring systems."""
