"""Where the boxes and lines of a graph are drawn: in layers, from left to right."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_SWEEPS = 4
_BETWEEN_BOXES = 18.0
# What a line takes that passes a layer.
_PASSAGE = 14.0


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """The upper left corner of a box, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph in its places.

    Attributes:
        boxes: By the id of the box.
        lines: The points of each line, in the order of the lines, from box to box.
    """

    width: float
    height: float
    boxes: Mapping[str, Place]
    lines: tuple[tuple[tuple[float, float], ...], ...]


@dataclass(slots=True)
class _Spot:
    """A box, or the passage of a line through a layer."""

    size: Size
    layer: int
    y: float = 0.0
    before: list[_Spot] = field(default_factory=list)
    after: list[_Spot] = field(default_factory=list)

    def wanted(self, *, of_before: bool) -> float:
        """Return where its neighbours would have its middle."""
        near = self.before if of_before else self.after
        return sum(spot.middle for spot in near) / len(near) if near else self.middle

    @property
    def middle(self) -> float:
        return self.y + self.size.height / 2


def arrange(sizes: Mapping[str, Size], lines: Sequence[tuple[str, str]], *, gap: float) -> Layout:
    """Return the places of boxes, the same for the same input.

    Args:
        sizes: The boxes by id; a box comes after those that lead to it.
        lines: From box to box.
        gap: The space between two layers.
    """
    layers = _find_layers(list(sizes), lines)
    spots = {name: _Spot(size, layers[name]) for name, size in sizes.items()}
    chains = [_connect(spots[source], spots[target]) for source, target in lines]
    columns = _columns([*spots.values(), *(spot for chain in chains for spot in chain[1:-1])])
    _order(columns)
    widths = [max(spot.size.width for spot in column) for column in columns]
    lefts = [sum(widths[:number]) + gap * number for number in range(len(widths))]
    top = min((spot.y for column in columns for spot in column), default=0.0)
    for column in columns:
        for spot in column:
            spot.y -= top
    places = {
        name: Place(lefts[spot.layer], spot.y, spot.size.width, spot.size.height)
        for name, spot in spots.items()
    }
    return Layout(
        width=sum(widths) + gap * max(0, len(widths) - 1),
        height=max((place.y + place.height for place in places.values()), default=0.0),
        boxes=places,
        lines=tuple(_points(chain, lefts, widths) for chain in chains),
    )


def _find_layers(names: Sequence[str], lines: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each box; a box without inputs is right before what it leads to."""
    targets: dict[str, list[str]] = {name: [] for name in names}
    sources: dict[str, list[str]] = {name: [] for name in names}
    for source, target in lines:
        targets[source].append(target)
        sources[target].append(source)
    layers: dict[str, int] = {}
    for name in names:
        layers[name] = max((layers[above] + 1 for above in sources[name]), default=0)
    for name in names:
        if targets[name] and not sources[name]:
            layers[name] = min(layers[below] for below in targets[name]) - 1
    return layers


def _connect(source: _Spot, target: _Spot) -> list[_Spot]:
    """Return the spots of a line, with a passage through each layer between its ends."""
    passages = [
        _Spot(Size(0.0, _PASSAGE), number) for number in range(source.layer + 1, target.layer)
    ]
    chain = [source, *passages, target]
    for left, right in itertools.pairwise(chain):
        left.after.append(right)
        right.before.append(left)
    return chain


def _columns(spots: Sequence[_Spot]) -> list[list[_Spot]]:
    columns: list[list[_Spot]] = [[] for _ in range(max((s.layer for s in spots), default=-1) + 1)]
    for spot in spots:
        columns[spot.layer].append(spot)
    for column in columns:
        _stack(column)
    return columns


def _order(columns: Sequence[list[_Spot]]) -> None:
    """Order each layer by the middle of its neighbours, from both sides in turn."""
    for sweep in range(_SWEEPS):
        from_left = sweep % 2 == 0
        for column in columns if from_left else reversed(columns):
            # A sort keeps the order of equals, so the result is the same each time.
            wanted = {id(spot): spot.wanted(of_before=from_left) for spot in column}
            column.sort(key=lambda spot: wanted[id(spot)])
            _settle(column, wanted)


def _stack(column: Sequence[_Spot]) -> None:
    y = 0.0
    for spot in column:
        spot.y = y
        y += spot.size.height + _BETWEEN_BOXES


def _settle(column: Sequence[_Spot], wanted: Mapping[int, float]) -> None:
    """Put the spots of a layer near where they are wanted, without overlaps, in their order."""
    _stack(column)
    # The shift that brings them nearest to where they are wanted, on average; then those that can
    # move down on their own do.
    if column:
        shift = sum(wanted[id(spot)] - spot.middle for spot in column) / len(column)
        for spot in column:
            spot.y += shift
    below = float("inf")
    for spot in reversed(column):
        lowest = below - spot.size.height
        spot.y = min(lowest, max(spot.y, wanted[id(spot)] - spot.size.height / 2))
        below = spot.y - _BETWEEN_BOXES


def _points(
    chain: Sequence[_Spot], lefts: Sequence[float], widths: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return the points of a line: passages are crossed straight, from edge to edge."""
    first, *passages, last = chain
    points = [(lefts[first.layer] + first.size.width, first.middle)]
    for spot in passages:
        left = lefts[spot.layer]
        points += [(left, spot.middle), (left + widths[spot.layer], spot.middle)]
    return (*points, (lefts[last.layer], last.middle))
