"""Every change that a client may ask for, the same for REST and the console."""
