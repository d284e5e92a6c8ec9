"""The places of the boxes of a graph: layers from left to right, few crossings; no drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BOX_WIDTH = 184
BOX_HEIGHT = 86
GAP_X = 92
GAP_Y = 26
# A line that passes a layer takes a narrow lane there, so that it runs between boxes.
_LANE = 12
_SWEEPS = 6

Edge = tuple[str, str]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by their id (left, top), and for each edge the points its line goes through."""

    boxes: Mapping[str, Point]
    lines: Sequence[Sequence[Point]]
    width: float
    height: float


def lay_out(nodes: Sequence[str], edges: Sequence[Edge], *, lowest: Collection[str] = ()) -> Layout:
    """Return where nodes stand; every edge goes to the right, whatever order they come in.

    Args:
        lowest: Nodes that stand below the others of their layer, wherever their lines come from.

    Edges that would close a circle, or name a node that is not there, get no line: an empty one.
    """
    if not nodes:
        return Layout({}, [()] * len(edges), 0, 0)
    usable = _without_circles(nodes, edges)
    layers = _layers(nodes, [edges[number] for number in usable])
    slots, paths = _with_lanes(layers, {number: edges[number] for number in usable})
    columns = [sorted(column, key=lambda slot: slot in lowest) for column in _order(slots, paths)]
    return _place(columns, paths, len(edges))


def _without_circles(nodes: Sequence[str], edges: Sequence[Edge]) -> list[int]:
    known = set(nodes)
    ahead: dict[str, set[str]] = defaultdict(set)
    kept = []
    for number, (source, target) in enumerate(edges):
        if source not in known or target not in known or _reaches(ahead, target, source):
            continue
        ahead[source].add(target)
        kept.append(number)
    return kept


def _reaches(ahead: Mapping[str, set[str]], source: str, target: str) -> bool:
    seen, left = set(), [source]
    while left:
        node = left.pop()
        if node == target:
            return True
        if node not in seen:
            seen.add(node)
            left.extend(ahead.get(node, ()))
    return False


def _layers(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    behind, ahead = defaultdict(list), defaultdict(list)
    for source, target in edges:
        ahead[source].append(target)
        behind[target].append(source)
    layers: dict[str, int] = {}

    def layer(node: str) -> int:
        if node not in layers:
            layers[node] = max((layer(source) + 1 for source in behind[node]), default=0)
        return layers[node]

    for node in nodes:
        layer(node)
    # What begins late stands beside what it goes to: a table next to the operator that joins it.
    for node in nodes:
        if not behind[node] and ahead[node]:
            layers[node] = min(layers[target] for target in ahead[node]) - 1
    return layers


def _with_lanes(
    layers: Mapping[str, int], edges: Mapping[int, Edge]
) -> tuple[list[list[str]], dict[int, list[str]]]:
    """Return what stands in each layer, and the slots that each edge goes through."""
    slots: list[list[str]] = [[] for _ in range(max(layers.values()) + 1)]
    for node, layer in layers.items():
        slots[layer].append(node)
    paths = {}
    for number, (source, target) in edges.items():
        lanes = []
        for layer in range(layers[source] + 1, layers[target]):
            lane = f"\0{number}.{layer}"
            slots[layer].append(lane)
            lanes.append(lane)
        paths[number] = [source, *lanes, target]
    return slots, paths


def _order(slots: list[list[str]], paths: Mapping[int, Sequence[str]]) -> list[list[str]]:
    """Return the layers with each slot near the middle of those it is joined with."""
    left, right = defaultdict(list), defaultdict(list)
    for path in paths.values():
        for source, target in pairwise(path):
            right[source].append(target)
            left[target].append(source)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        for column in slots if forth else reversed(slots):
            _sort(column, left if forth else right, slots)
    return slots


def _sort(
    column: list[str], beside: Mapping[str, Sequence[str]], slots: Sequence[Sequence[str]]
) -> None:
    at = {slot: (n + 0.5) / len(layer) for layer in slots for n, slot in enumerate(layer)}

    def rank(slot: str) -> float:
        near = beside.get(slot)
        return sum(at[neighbour] for neighbour in near) / len(near) if near else at[slot]

    column.sort(key=rank)


def _place(
    columns: Sequence[Sequence[str]], paths: Mapping[int, Sequence[str]], count: int
) -> Layout:
    heights = [sum(map(_height, column)) + GAP_Y * (len(column) - 1) for column in columns]
    tallest = max(heights)
    boxes: dict[str, Point] = {}
    middles: dict[str, float] = {}
    lefts: dict[str, float] = {}
    for number, column in enumerate(columns):
        x, y = number * (BOX_WIDTH + GAP_X), (tallest - heights[number]) / 2
        for slot in column:
            middles[slot], lefts[slot] = y + _height(slot) / 2, x
            if not slot.startswith("\0"):
                boxes[slot] = (x, y)
            y += _height(slot) + GAP_Y
    lines: list[Sequence[Point]] = [()] * count
    for number, path in paths.items():
        lines[number] = _points(path, lefts, middles)
    width = len(columns) * (BOX_WIDTH + GAP_X) - GAP_X
    return Layout(boxes, lines, width, tallest)


def _points(
    path: Sequence[str], lefts: Mapping[str, float], middles: Mapping[str, float]
) -> list[Point]:
    first, *lanes, last = path
    points = [(lefts[first] + BOX_WIDTH, middles[first])]
    for lane in lanes:
        points += [(lefts[lane], middles[lane]), (lefts[lane] + BOX_WIDTH, middles[lane])]
    return [*points, (lefts[last], middles[last])]


def _height(slot: str) -> float:
    return _LANE if slot.startswith("\0") else BOX_HEIGHT
