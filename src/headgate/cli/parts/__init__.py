"""What every command is made of: options, output, help, and the place of its jobs."""
