"""Child processes of our own: spawned, asked, answered, and found dead."""
