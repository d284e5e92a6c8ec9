"""The jobs that a server keeps up: submitted, watched, and started again."""
