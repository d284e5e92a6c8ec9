"""A graph as SVG, for notebooks: plain text that loads nothing and has no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from headgate.flow.drawing.explain import describe_node
from headgate.flow.drawing.layout import Place, Size, arrange
from headgate.flow.graph.ancestry import is_of_side_output
from headgate.flow.graph.edges import Edge, Exchange, edges_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Node, Output, Source, SourceKind

# Widths of characters, estimated: what is cut has its whole text as a tooltip.
_TITLE_CHAR = 7.0
_CHAR = 6.2
_LONGEST = 34
_LONGEST_LABEL = 24
_LINE = 15.0
_PAD = 10.0
_MARGIN = 12.0
_NARROWEST = 90.0
_SMALLEST_GAP = 48.0

# Fill and border by the kind of a box; both are readable on white and in print.
_COLOURS = {
    "source": ("#e8f1fb", "#2b6cb0"),
    "table": ("#e6f6f4", "#1f7a6d"),
    "operator": ("#ffffff", "#5a6472"),
    "output": ("#eaf6ea", "#2f7d32"),
    "dead-letters": ("#fdf1e7", "#b45309"),
}


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a drawing.

    Attributes:
        kind: `source`, `table`, `operator`, `output` or `dead-letters`.
        lines: Below the title.
        hint: The tooltip.
        side: Whether it is drawn with a dashed border.
    """

    id: str
    kind: str
    title: str
    lines: tuple[str, ...] = ()
    hint: str = ""
    side: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line from box to box."""

    source: str
    target: str
    label: str = ""


def draw_flow(graph: Graph) -> str:
    """Return a flow as SVG; the graph need not be complete."""
    boxes = [_box(node, graph) for node in graph.nodes]
    lines = [Line(e.source.node, e.target, _label(e, graph)) for e in edges_of(graph)]
    return draw(boxes, lines, title=f"Flow {graph.name}")


def _box(node: Node, graph: Graph) -> Box:
    detail = describe_node(node)
    kind, side = "operator", False
    if isinstance(node, Source):
        kind = "table" if node.kind is SourceKind.TABLE else "source"
    elif isinstance(node, Output):
        kind, side = "output", is_of_side_output(graph.node, node.input)
    name = graph.names.get(node.id, node.id)
    return Box(node.id, kind, name, (detail,), f"{node.id}: {detail}", side)


def _label(edge: Edge, graph: Graph) -> str:
    several = len(graph.node(edge.source.node).outputs) > 1
    parts = [edge.source.output] if several else []
    if edge.exchange is not Exchange.FORWARD:
        parts.append(edge.describe())
    return ", ".join(parts)


def draw(boxes: Sequence[Box], lines: Sequence[Line], *, title: str) -> str:
    """Return boxes and lines as SVG; all text is escaped.

    Args:
        boxes: A box comes after those that lead to it.
        title: For readers who cannot see the drawing.
    """
    longest = max((len(_cut(line.label, _LONGEST_LABEL)) for line in lines), default=0)
    layout = arrange(
        {box.id: _size(box) for box in boxes},
        [(line.source, line.target) for line in lines],
        gap=max(_SMALLEST_GAP, longest * _CHAR + 24),
    )
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        'style="max-width:100%;height:auto;background:#fff;border-radius:6px" '
        'font-family="system-ui,sans-serif" font-size="11" fill="#1f2933">',
        f'<g transform="translate({_MARGIN:.0f},{_MARGIN:.0f})">',
    ]
    for line, points in zip(lines, layout.lines, strict=True):
        parts += _draw_line(line, points)
    for box in boxes:
        parts += _draw_box(box, layout.boxes[box.id])
    return "\n".join([*parts, "</g>", "</svg>"])


def _size(box: Box) -> Size:
    titled = len(_cut(box.title, _LONGEST)) * _TITLE_CHAR
    written = max((len(_cut(line, _LONGEST)) * _CHAR for line in box.lines), default=0.0)
    width = max(titled, written, _NARROWEST - 2 * _PAD) + 2 * _PAD
    return Size(width, _LINE * (1 + len(box.lines)) + _PAD + 4)


def _draw_box(box: Box, place: Place) -> Iterable[str]:
    fill, border = _COLOURS.get(box.kind, _COLOURS["operator"])
    dashes = ' stroke-dasharray="4 3"' if box.side else ""
    yield f"<g><title>{escape(box.hint or box.title)}</title>"
    yield (
        f'<rect x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="5" fill="{fill}" stroke="{border}"{dashes}/>'
    )
    x, y = place.x + _PAD, place.y + _PAD + 9
    yield (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" font-weight="600">'
        f"{escape(_cut(box.title, _LONGEST))}</text>"
    )
    for number, line in enumerate(box.lines, start=1):
        yield (
            f'<text x="{x:.1f}" y="{y + _LINE * number:.1f}" fill="#52606d">'
            f"{escape(_cut(line, _LONGEST))}</text>"
        )
    yield "</g>"


def _draw_line(line: Line, points: Sequence[tuple[float, float]]) -> Iterable[str]:
    (x, y), *rest = points
    path = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in rest:
        bend = (x + to_x) / 2
        path.append(f"C{bend:.1f},{y:.1f} {bend:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    yield f'<path d="{" ".join(path)}" fill="none" stroke="#9aa5b1" stroke-width="1.4"/>'
    yield f'<path d="M{x:.1f},{y:.1f} l-7,-3.5 v7 z" fill="#9aa5b1"/>'
    if line.label:
        # In the last gap, where lines of one box have parted.
        (from_x, from_y), (to_x, to_y) = points[-2:]
        yield (
            f'<text x="{(from_x + to_x) / 2:.1f}" y="{(from_y + to_y) / 2 - 4:.1f}" '
            'text-anchor="middle" fill="#52606d" stroke="#fff" stroke-width="3" '
            f'paint-order="stroke"><title>{escape(line.label)}</title>'
            f"{escape(_cut(line.label, _LONGEST_LABEL))}</text>"
        )


def _cut(text: str, longest: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
