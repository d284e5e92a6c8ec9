"""REST under /v1: one module for each resource, and what all of them share."""
