"""The kernel room: the jar of native operators and sinks, and the only way to it from Python."""
