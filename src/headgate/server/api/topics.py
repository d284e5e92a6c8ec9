"""REST on the topics of the server's own log."""

from __future__ import annotations

from fastapi import APIRouter

from headgate.jobs.topics import listing
from headgate.server.api import models
from headgate.server.api.paging import Newest
from headgate.server.api.routing import Router, Server, user_data


def topic_routes() -> APIRouter:
    """Return the routes on the topics of the server's own log."""
    router = Router("topics")

    @router.get("/topics")
    def list_topics(server: Server) -> models.TopicList:
        """List the topics of the log that the server was started on."""
        with server.slow_read():
            return models.TopicList(listing.list_topics(server.settings.on))

    @router.get("/topics/{topic}/records")
    @user_data
    def list_topic_records(
        server: Server, topic: models.TopicName, limit: Newest = 20
    ) -> models.TopicRecords:
        """Show the last records of a topic."""
        with server.slow_read():
            records = listing.tail_topic(server.settings.on, topic, last=limit)
        texts = [record.decode("utf-8", "backslashreplace") for record in records]
        return models.TopicRecords(topic, texts)

    return router
