"""State of a keyed process function during a call: values, lists and maps. No Spark."""
