"""The run room: one attempt of one flow on Spark. Speaks of queries, batches and triggers."""
