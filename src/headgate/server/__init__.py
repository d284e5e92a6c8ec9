"""The server: jobs over HTTP, for programs under /v1 and for people in the console."""
