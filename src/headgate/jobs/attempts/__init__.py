"""One attempt of a job: the child that holds the driver, and how it is launched."""
