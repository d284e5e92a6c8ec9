"""Topics that are folders of JSON lines."""

from headgate.connectors.files.descriptor import Files

__all__ = ["Files"]
