"""Flows and jobs in notebooks: drawings without overlaps, and text that is always escaped."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import pytest

from headgate import Flow
from headgate.flow.drawing.html import table
from headgate.flow.drawing.layout import Layout, Size, arrange
from headgate.flow.drawing.svg import Box, Line, draw
from headgate.interactive.html import draw_job, key_text, list_rows, show_job
from headgate.jobs.views.graph import build_view
from headgate.jobs.views.job import JobView

BAD = "<script>alert('x')</script>&\"'"


def shop() -> Flow:
    flow = Flow("shop")
    orders = flow.stream("orders", "id BIGINT NOT NULL, userId BIGINT")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    with_user = orders.enrich("with-user", users, on="userId", into="user")
    with_user.matched.where("user.name <> '<b>'").to("enriched")
    with_user.missing.to("missing")
    return flow


def parse(svg: str) -> ElementTree.Element:
    """Return the elements of a drawing, which must be well-formed and load nothing."""
    for word in ("<script", "href", "url(", "<image", "@import", "<foreignObject"):
        assert word not in svg
    return ElementTree.fromstring(svg)


def texts(svg: str) -> str:
    return " ".join(text.strip() for text in parse(svg).itertext() if text.strip())


def test_a_flow_shows_its_nodes_and_how_rows_get_from_one_to_the_next() -> None:
    shown = texts(shop()._repr_html_())
    for word in ("orders", "with-user", "enriched", "missing", "key_by userId", "matched"):
        assert word in shown
    assert shop()._repr_html_() == shop()._repr_html_()


def test_an_operator_with_a_name_is_shown_by_it_in_flows_and_jobs() -> None:
    flow = Flow("shop")
    flow.stream("orders", "id BIGINT").filter(lambda row: row.id > 0, name="New ones").to("o")
    assert "New ones" in texts(flow._repr_html_())
    assert "New ones" in texts(draw_job(build_view("shop", flow.graph(), {})))


def test_a_flow_that_is_not_complete_is_shown_as_it_is() -> None:
    flow = Flow("begun")
    assert "Flow begun" in flow._repr_html_()
    flow.stream("orders", "id BIGINT")
    assert "orders" in texts(flow._repr_html_())


def test_the_parts_of_a_flow_show_their_columns() -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", "id BIGINT NOT NULL, userId BIGINT")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    enriched = orders.enrich("with-user", users, on="userId", into="user")
    for part, words in (
        (orders, ("orders", "a stream", "userId", "BIGINT", "not null")),
        (users, ("users", "a table", "STRING")),
        (enriched, ("with-user", ".matched", ".missing", "STRUCT")),
        (orders.key_by("userId"), ("orders", "a keyed stream")),
    ):
        shown = part._repr_html_()
        assert all(word in shown for word in words), shown


def test_a_job_shows_its_state_and_the_rows_on_each_edge() -> None:
    status = {"ports": {"orders.out": 1200, "with-user.matched": 1150}, "outputs": {"missing": 50}}
    view = build_view("shop", shop().graph(), status)
    assert "1,150" in texts(draw_job(view))
    # Dead letters are a box once there are any.
    assert "dead-letters" not in draw_job(view)
    broken = build_view("shop", shop().graph(), {"ports": {"orders!": 3}, "outputs": {}})
    assert "dead-letters" in draw_job(broken)
    shown = show_job(JobView(name="shop", state="FAILED", is_alive=False, reason=BAD), view)
    assert "FAILED" in shown
    assert BAD not in shown


def test_all_text_is_escaped() -> None:
    svg = draw(
        [Box("a", "source", BAD, (BAD,), BAD), Box("b", BAD, "b")], [Line("a", "b", BAD)], title=BAD
    )
    assert BAD in texts(svg)
    for markup in (table((BAD,), [(BAD,)]), list_rows((BAD,), [(BAD,)])._repr_html_()):
        tags = Tags()
        tags.feed(markup)
        assert tags.found == {"table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """Collects the names of the elements in HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - its name is fixed
        self.found.add(tag)


@pytest.mark.parametrize("seed", range(40))
def test_boxes_do_not_overlap_and_lines_lead_to_the_right(seed: int) -> None:
    draws = random.Random(seed)
    names = [f"n{number}" for number in range(draws.randint(1, 14))]
    sizes = {name: Size(draws.uniform(60, 200), draws.uniform(30, 70)) for name in names}
    pairs = list(combinations(names, 2))
    lines = draws.sample(pairs, min(len(pairs), draws.randint(0, 20)))
    layout = arrange(sizes, lines, gap=50)
    assert layout == arrange(sizes, lines, gap=50)
    check_apart(layout)
    for (source, target), points in zip(lines, layout.lines, strict=True):
        left, right = layout.boxes[source], layout.boxes[target]
        assert points[0] == (left.x + left.width, left.y + left.height / 2)
        assert points[-1] == (right.x, right.y + right.height / 2)
        assert [x for x, _ in points] == sorted(x for x, _ in points)


def check_apart(layout: Layout) -> None:
    for one, other in combinations(layout.boxes.values(), 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        below = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert beside or below, (one, other)
    for place in layout.boxes.values():
        assert place.x >= 0
        assert place.y >= 0
        assert place.x + place.width <= layout.width + 1e-6
        assert place.y + place.height <= layout.height + 1e-6


def test_no_line_runs_through_a_box() -> None:
    boxes = [Box(name, "operator", name * 12) for name in "abcd"]
    svg = draw(boxes, [Line("a", "b"), Line("b", "c"), Line("c", "d"), Line("a", "d")], title="t")
    # The line from a to d passes two layers: it is straight there, beside the boxes.
    layout = arrange(
        {b.id: Size(90, 40) for b in boxes},
        [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")],
        gap=50,
    )
    for (x, y), (to_x, _) in zip(layout.lines[3][1:-1:2], layout.lines[3][2::2], strict=True):
        for place in layout.boxes.values():
            inside = place.x < to_x and x < place.x + place.width
            assert not (inside and place.y < y < place.y + place.height)
    assert len(re.findall("<rect", svg)) == 4


def test_keys_are_written_as_the_command_line_takes_them() -> None:
    assert [key_text(key) for key in (42, "42", ("a", 1), {"a": 1})] == [
        "42",
        '"42"',
        '["a", 1]',
        '{"a": 1}',
    ]
