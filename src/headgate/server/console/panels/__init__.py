"""The panels that pages are made of: each shows one thing and acts on it."""
