"""Stack traces of the JVM."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery


def query_trace(query: StreamingQuery) -> str:
    """Return the stack trace of a query's failure with all causes; empty if it is unknown."""
    try:
        ended = query._jsq.exception()
        context = SparkContext._active_spark_context
        if not ended.isDefined() or context is None or context._jvm is None:
            return ""
        failure = ended.get()
        writer = context._jvm.java.io.StringWriter()
        # The message of the query's own exception has the whole plan.
        thrown = failure.getCause() or failure
        thrown.printStackTrace(context._jvm.java.io.PrintWriter(writer))
        return str(writer.toString())
    except (Py4JError, OSError):
        # The JVM is gone.
        return ""
