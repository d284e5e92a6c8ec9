"""This machine: is it fit to run jobs, and what it has prepared for them."""
