"""Manifests, each parsed once in a process for as long as its file stays as it is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints.manifest import Manifest

_MOST_PARSED = 256

# What a manifest's file was when it was parsed, and what it said; the last to be used come last.
_parsed: OrderedDict[Path, tuple[tuple[int, ...], Manifest]] = OrderedDict()
_parsing = threading.Lock()


def read_manifest(folder: Path) -> Manifest:
    """Return what a kept checkpoint or a savepoint says of itself; nobody may change it.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    try:
        file = manifests.find_file(folder)
        found = None if file is None else file.stat()
    except OSError:
        found = None
    if found is None:
        return manifests.read(folder)
    mark = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    with _parsing:
        known = _parsed.get(folder)
        if known is not None and known[0] == mark:
            _parsed.move_to_end(folder)
            return known[1]
    manifest = manifests.read(folder)
    with _parsing:
        _parsed[folder] = (mark, manifest)
        while len(_parsed) > _MOST_PARSED:
            _parsed.popitem(last=False)
    return manifest


def forget_parsed(folder: Path) -> None:
    """Let go of what a checkpoint said that is gone."""
    with _parsing:
        _parsed.pop(folder, None)
