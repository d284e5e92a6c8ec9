"""Topics that are folders of data files."""

from headgate.connectors.folder.descriptor import Folder, Parquet

__all__ = ["Folder", "Parquet"]
