"""The counts of an audit: by key and by position. Pure."""
