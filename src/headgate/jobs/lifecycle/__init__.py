"""The life of a job as pure decisions: states, transitions, restarts, intents."""
