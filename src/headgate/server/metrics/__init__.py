"""The metrics of jobs for Prometheus."""
