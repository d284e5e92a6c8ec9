"""Previews: what a flow would write of some records, computed by a process of its own."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headgate.engine.memory.records import write_record
from headgate.errors import Domain, HeadgateError
from headgate.flow.drawing.html import heading, table
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source
from headgate.interactive.html import json_text
from headgate.interactive.tables import text_table
from headgate.jobs.processes.child import ChildProcess, open_output, spawn

# The column of an output whose rows are texts.
_TEXT = "text"


class Preview(Mapping[str, list[Any]]):
    """The first rows of each output, and of the dead letters, by name.

    Attributes:
        counts: The number of all rows, by output.
    """

    def __init__(self, outputs: Mapping[str, list[Any]], counts: Mapping[str, int]) -> None:
        self._outputs = outputs
        self.counts = counts

    def __getitem__(self, output: str) -> list[Any]:
        return self._outputs[output]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        parts = [
            f"{name}: {self._describe(name)}\n{text_table(*_cells(rows))}".rstrip()
            for name, rows in self._shown()
        ]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(
            heading(name, self._describe(name)) + (table(*_cells(rows)) if rows else "")
            for name, rows in self._shown()
        )

    def _shown(self) -> list[tuple[str, list[Any]]]:
        """Return the outputs; dead letters, which come last, if there are any."""
        names = list(self._outputs)
        return [
            (name, self._outputs[name]) for name in names if self.counts[name] or name != names[-1]
        ]

    def _describe(self, name: str) -> str:
        count, shown = self.counts[name], len(self._outputs[name])
        rows = f"{count} row{'' if count == 1 else 's'}"
        return rows if shown == count else f"the first {shown} of {rows}"


def _cells(rows: list[Any]) -> tuple[list[str], list[list[str]]]:
    """Return the columns of rows, and their cells."""
    dicts = [row if isinstance(row, dict) else {_TEXT: _shown_text(row)} for row in rows]
    columns = list(dict.fromkeys(name for row in dicts for name in row))
    return columns, [[json_text(row.get(name, "")) for name in columns] for row in dicts]


def _shown_text(row: str | bytes) -> str:
    return row.decode(errors="backslashreplace") if isinstance(row, bytes) else row


def preview_flow(
    graph: Graph, inputs: Mapping[str, Iterable[Any]], *, rows: int, batches: int
) -> Preview:
    """Return the first rows that a flow writes of some records."""
    if rows < 0:
        raise HeadgateError(
            "BAD_SETTING", f"rows must be 0 or more, got {rows}", hint="use rows=20"
        )
    sources = {node.id: node for node in graph.nodes if isinstance(node, Source)}
    records = {
        name: [
            write_record(sources.get(name), value).decode("utf-8", "surrogateescape")
            for value in values
        ]
        for name, values in inputs.items()
    }
    order = {"flow": graph.to_json(), "inputs": records, "rows": rows, "batches": batches}
    answer = _PROCESS.ask(order, flow=graph.name)
    outputs = {name: [_row(row) for row in some] for name, some in answer["outputs"].items()}
    return Preview(outputs, answer["counts"])


def _row(row: Any) -> Any:
    """Return a row of an answer; bytes are in a list, which no row is."""
    return base64.b64decode(row[0]) if isinstance(row, list) else row


class _Process:
    """The process of previews: started by the first one, and ended with this process."""

    def __init__(self) -> None:
        self._child: ChildProcess | None = None
        self._lock = threading.Lock()

    def ask(self, order: Mapping[str, Any], *, flow: str) -> dict[str, Any]:
        with self._lock:
            if self._child is not None and self._child.find_death() is not None:
                # It has been idle for long.
                self._end()
            child = self._child or spawn(
                "headgate.interactive.preview_process", output=open_output()
            )
            self._child = child
            try:
                child.send(order)
                answer = child.receive()
            except BaseException:
                # Ctrl-C: the answer must not be taken for that of the next preview.
                self._end()
                raise
            if answer is None:
                death = child.get_death().explain()
                self._end()
                raise _died(flow, death)
        if "error" in answer:
            raise HeadgateError.from_json(answer["error"])
        return dict(answer["answer"])

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.close()
            self._child = None


_PROCESS = _Process()


def _died(flow: str, death: str) -> HeadgateError:
    return HeadgateError(
        "PREVIEW_FAILED",
        f"cannot preview flow {flow!r}: its process {death}",
        hint="preview fewer records",
        domain=Domain.EXTERNAL,
    )
