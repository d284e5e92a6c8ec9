"""Everything to try a flow with: local brokers, generated data, the demo."""
