"""The lifecycle room: jobs, what is wanted of them and what they are doing."""
