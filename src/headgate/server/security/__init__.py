"""Who may do what, and how often: roles, tokens, sessions, limits, the audit log."""
