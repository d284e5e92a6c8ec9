"""The run room: one attempt of one flow on Spark. Uses Spark's terms: query, batch, trigger."""
