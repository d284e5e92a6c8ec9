"""The drawing of a job's graph in a real browser: what stands where, measured."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from console_shop import EXAMPLE, Store, Visitor, serving, visiting
from past_jobs import NOON, RUN, make_job
from playwright.sync_api import Browser

from headgate import Flow
from headgate.flow.graph.graph import Graph
from headgate.jobs.runs.lineage import Run, new_run, write_run
from headgate.windows import count, session, tumbling

WIDE, NARROW = 1280, 360
LONG = "orders-of-all-customers-in-every-region-of-the-world-by-day"
# In pixels: what touches is not what overlaps.
TOUCHING = 0.5

# Reads the boxes of texts, nodes and the drawing itself, and points on every line, in pixels.
_MEASURE = """() => {
  const drawing = document.querySelector("svg.hg-graph");
  const box = (element, text) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return { text, left, top, right, bottom };
  };
  const all = (selector) => [...drawing.querySelectorAll(selector)];
  const shown = (element) => element.lastChild.textContent;
  const points = (line) => {
    const length = line.getTotalLength(), to = line.getScreenCTM();
    return Array.from({ length: Math.ceil(length / 2) + 1 }, (_, n) => {
      const { x, y } = line.getPointAtLength(Math.min(length, 2 * n)).matrixTransform(to);
      return [x, y];
    });
  };
  const texts = all("text");
  return {
    drawing: box(drawing, "the drawing"),
    labels: all(".hg-line-text").map((label) => box(label, shown(label))),
    nodes: all(".hg-box-edge").map((edge) => box(edge, edge.parentNode.getAttribute("aria-label"))),
    inside: all(".hg-box").map((node) => ({
      edge: box(node.querySelector(".hg-box-edge"), ""),
      texts: [...node.parentNode.querySelectorAll("text")].map((text) => box(text, shown(text))),
    })),
    lines: all(".hg-line").map(points),
    smallest: Math.min(...texts.map((text) =>
      parseFloat(getComputedStyle(text).fontSize) * drawing.getScreenCTM().a)),
  };
}"""


def _orders() -> Graph:
    spec = importlib.util.spec_from_file_location("orders_flow", EXAMPLE / "flow.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph: Graph = module.flow.graph()
    return graph


def _windows() -> Graph:
    """Return a flow with everything that is long: names, keys, side outputs, steps."""
    flow = Flow("windows")
    columns = "id BIGINT, customerNumber BIGINT, regionOfDelivery STRING, price DOUBLE, at BIGINT"
    events = flow.stream(LONG, columns, event_time="at", out_of_orderness="5s")
    names = flow.table("names-of-customers", "id BIGINT, name STRING", key="id")
    once = events.dedupe("once-only", by="id", within="10m")
    named = once.unique.enrich(
        "with-the-name-of-the-customer", names, on="customerNumber", into="c"
    )
    keyed = named.matched.key_by("customerNumber", "regionOfDelivery")
    counted = keyed.window("count-15m", tumbling("15m")).aggregate(orders=count())
    visits = keyed.window("visits", session(gap="30m")).aggregate(orders=count())
    counted.updates.where("orders > 1").to(f"{LONG}-counted")
    visits.updates.to("visits")
    visits.late.to("late-visits")
    named.missing.select("id").to("nobody")
    return flow.graph()


def _status(graph: Graph) -> dict[str, Any]:
    """Return the status of a job that has read a lot, with dead letters of each source."""
    sources = [*graph.streams(), *graph.tables()]
    ports = {f"{node.id}.{port}": 118_234 for node in graph.nodes for port in node.outputs}
    operators = [node.id for node in graph.stateful()]
    return {
        "state": "RUNNING",
        "lineage": RUN,
        "checkpoint": None,
        "inputs": {source.id: 118_234_567 for source in sources},
        "outputs": {output.id: 117_999 for output in graph.outputs()},
        "ports": ports | {f"{source.id}!": 1_183 for source in sources[:-1]},
        "ports_per_s": dict.fromkeys(ports, 12_345.6),
        "state_rows": dict.fromkeys(operators, 117_178),
        "state_bytes": dict.fromkeys(operators, 44_912_345),
        "watermark": NOON.isoformat(),
        "busy": dict.fromkeys(operators, 0.93),
        "lag_records": {graph.streams()[0].id: 1_234_567},
    }


GRAPHS = {"orders": _orders, "windows": _windows}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a server with a job for each graph; they are held, as running ones."""
    store = Store(tmp_path_factory.mktemp("graphs"))
    make_job(store.home, "never-ran")
    with ExitStack() as held:
        for name, make in GRAPHS.items():
            graph = make()
            home = make_job(store.home, name)
            run = new_run(home, graph, parallelism=2, checkpoints=None, now=NOON)
            write_run(home, Run(**{n: getattr(run, n) for n in Run.__slots__} | {"lineage": RUN}))
            home.write_status(_status(graph))
            held.enter_context(home.locked())
        yield held.enter_context(serving(store))


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Visitor]:
    """Give the page of all tests: a browser without the console's scripts compiles for 2 s."""
    with visiting(browser, address) as found:
        yield found


Box = Mapping[str, Any]


def _overlap(one: Box, other: Box) -> bool:
    return bool(
        one["left"] < other["right"] - TOUCHING
        and other["left"] < one["right"] - TOUCHING
        and one["top"] < other["bottom"] - TOUCHING
        and other["top"] < one["bottom"] - TOUCHING
    )


def _is_inside(one: Box, other: Box) -> bool:
    return bool(
        one["left"] >= other["left"] - TOUCHING
        and one["right"] <= other["right"] + TOUCHING
        and one["top"] >= other["top"] - TOUCHING
        and one["bottom"] <= other["bottom"] + TOUCHING
    )


def _faults(seen: Mapping[str, Any]) -> list[str]:
    """Return what covers, crosses or leaves what it should not."""
    labels, nodes, drawing = seen["labels"], seen["nodes"], seen["drawing"]
    blocks = [*labels, *nodes]
    faults = [f"outside: {block['text']}" for block in blocks if not _is_inside(block, drawing)]
    for number, one in enumerate(blocks):
        others = blocks[number + 1 :]
        faults += [f"{one['text']} x {o['text']}" for o in others if _overlap(one, o)]
        for points in seen["lines"]:
            inner = [(x, y) for x, y in points if _overlap(_spot(x, y), one)]
            faults += [f"a line crosses {one['text']}"] if inner else []
    for node in seen["inside"]:
        texts = node["texts"]
        faults += [f"leaves its box: {t['text']}" for t in texts if not _is_inside(t, node["edge"])]
        for number, one in enumerate(texts):
            # Lines of text are as high as their font, with room for accents: they may touch.
            low = {**one, "top": one["top"] + 3, "bottom": one["bottom"] - 3}
            faults += [
                f"{one['text']} on {o['text']}" for o in texts[number + 1 :] if _overlap(low, o)
            ]
    return faults


def _spot(x: float, y: float) -> Box:
    """Return a point as a box that overlaps a box only if it is within it by a pixel."""
    return {"left": x, "right": x, "top": y, "bottom": y}


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("job", list(GRAPHS))
def test_no_label_of_the_graph_is_covered_or_cut(visitor: Visitor, job: str, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.open(f"/jobs/{job}")
    visitor.page.locator("svg.hg-graph").wait_for()
    seen = visitor.page.evaluate(_MEASURE)
    graph = GRAPHS[job]()
    assert len(seen["nodes"]) == len(graph.nodes) + len(graph.unused_outputs())
    assert len(seen["labels"]) >= len(seen["nodes"]) - 1
    assert _faults(seen) == []
    assert seen["smallest"] >= 9
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_box_leads_to_its_details_and_to_its_dead_letters(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": WIDE, "height": 900})
    visitor.open("/jobs/orders")
    box = visitor.page.get_by_role("button", name="with-user").first
    box.focus()
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_label("Details of with-user").wait_for()
    assert box.get_attribute("aria-pressed") == "true"
    visitor.page.get_by_role("link", name="1,183 dead letters of orders").click()
    visitor.page.wait_for_url("**/jobs/orders/outputs?output=dead-letters")


def test_a_job_that_never_ran_has_no_graph(visitor: Visitor) -> None:
    visitor.open("/jobs/never-ran")
    visitor.page.get_by_text("got as far as to have a graph").wait_for()
