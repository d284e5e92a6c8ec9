"""The commands that try flows out: local brokers, generated data, the demonstration."""
