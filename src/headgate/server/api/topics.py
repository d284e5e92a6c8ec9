"""REST on the topics of the server's own log."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from headgate.jobs.topics import listing
from headgate.server.api import models
from headgate.server.api.routing import Server, make_router, reply


def topic_routes() -> APIRouter:
    """Return the routes on the topics of the server's own log."""
    router = make_router("topics")

    @router.get("/topics", response_model=models.TopicList)
    def list_topics(server: Server) -> Response:
        """List the topics of the log that the server was started on."""
        with server.slow_read():
            found = listing.list_topics(server.settings.on)
        return reply(server, models.TopicList(found))

    @router.get("/topics/{topic}/records", response_model=models.TopicRecords)
    def tail_topic(server: Server, topic: models.TopicName, lines: models.Lines = 20) -> Response:
        """Show the last records of a topic."""
        with server.slow_read():
            found = listing.tail_topic(server.settings.on, topic, last=lines)
        records = [each.decode("utf-8", "backslashreplace") for each in found]
        return reply(server, models.TopicRecords(topic, records), guess=False)

    return router
