"""From a flow's graph and its topics to what the kernel runs. Pure."""
