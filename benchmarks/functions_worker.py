"""CPU that a worker needs for an event of a keyed process function, without Spark.

Starts a worker as the kernel does and sends it calls like those of `make bench-functions`: events
of 4 columns, one `Value` that is read and set, and one row of 2 columns for each event.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import functions_flow
import pyarrow as pa

from headgate.flow.operators.nodes import Process
from headgate.functions.processes.calls import ProcessCalls, ProcessShape
from headgate.functions.processes.memory import MemoryKernel, Work, shape_of
from headgate.functions.python_types import python_type
from headgate.functions.stored import ProcessCallback, load

_TICKS = os.sysconf("SC_CLK_TCK")
# Calls beforehand: a worker is not measured while it starts.
_FIRST = 20


def main() -> None:
    """Print the CPU of one event, for calls with many keys and with few."""
    wanted = _parse()
    for events, keys in ((4096, 780), (800, 800)):
        runs = [_measure(events, keys, wanted.calls * 4096 // events) for _ in range(wanted.rounds)]
        print(
            f"{events} events over {keys} keys a call: {statistics.median(runs):.2f} µs an event "
            f"(runs: {', '.join(f'{run:.2f}' for run in runs)})"
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300, help="calls of 4,096 events")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def _measure(events: int, keys: int, calls: int) -> float:
    """Return the µs of CPU of an event."""
    code, shape = _process()
    bodies = _bodies(code, shape, events, keys)
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "worker")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(place)
            server.listen()
            command = [sys.executable, "-m", "headgate.functions.worker", place]
            with subprocess.Popen(command) as process:
                connection, _ = server.accept()
                with connection:
                    _send_functions(connection, code, shape)
                    _send(connection, bodies, _FIRST)
                    before = _cpu(process.pid)
                    _send(connection, bodies, calls)
                    return (_cpu(process.pid) - before) / (events * calls) * 1e6


def _process() -> tuple[bytes, ProcessShape]:
    node = functions_flow.process.graph().node("totals")
    assert isinstance(node, Process)
    code = base64.b64decode(node.function.code)
    callback = load(code)
    assert isinstance(callback, ProcessCallback)
    given = [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("visit_id", pa.string(), nullable=False),
        pa.field("event_time", pa.int64(), nullable=False),
        pa.field("page", pa.string(), nullable=False),
    ]
    return code, shape_of(
        callback.states,
        given=pa.schema(given),
        keys=pa.schema([given[1]]),
        outputs=[("out", python_type(functions_flow.Total))],
        has_timers=False,
    )


def _bodies(code: bytes, shape: ProcessShape, events: int, keys: int) -> list[bytes]:
    """Return calls with different events."""
    callback = load(code)
    assert isinstance(callback, ProcessCallback)
    calls = ProcessCalls(callback, shape, name="totals", uid="totals", dead_letters=False)
    kernel = MemoryKernel(calls, shape)
    draw = random.Random(1)
    made = []
    for _ in range(8):
        work = []
        for place in range(keys):
            name = str(draw.randrange(100_000_000))
            many = events * (place + 1) // keys - events * place // keys
            rows = [
                (str(draw.randrange(10**9)), name, draw.randrange(1 << 40), f"/page/{row}")
                for row in range(many)
            ]
            text = f'"{name}"'.encode()
            kernel.state.records[text] = ({"value": draw.randrange(1000), "expires": None}, None)
            work.append(Work(text, (name,), rows))
        made.append(kernel.body(work, now=1, watermark=0, batch=1, phase=0))
    return made


def _send_functions(connection: socket.socket, code: bytes, shape: ProcessShape) -> None:
    function = {
        "address": 0,
        "name": "process 'totals'",
        "uid": "totals",
        "kind": "PROCESS",
        "dead_letters": False,
        "code": base64.b64encode(code).decode(),
        "timers": False,
        "given": _schema(shape.given),
        "keys": _schema(shape.keys),
        "record": _schema(shape.record),
        "pages": [],
        "outputs": [{"port": port, "schema": _schema(schema)} for port, schema in shape.outputs],
    }
    path = [str(Path(__file__).parent)]
    message = {"memory": 0, "check": False, "path": path, "functions": [function]}
    told = json.dumps(message).encode()
    connection.sendall(struct.pack(">i", len(told)) + told)
    _receive(connection)


def _schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _send(connection: socket.socket, bodies: Sequence[bytes], calls: int) -> None:
    for body in _around(bodies, calls):
        connection.sendall(struct.pack(">iii", 0, 0, len(body)) + body)
        _receive(connection)


def _around(bodies: Sequence[bytes], count: int) -> Iterator[bytes]:
    return (bodies[i % len(bodies)] for i in range(count))


def _receive(connection: socket.socket) -> None:
    state, _, _, text, length = struct.unpack(">iiiii", _exactly(connection, 20))
    words = _exactly(connection, text)
    _exactly(connection, length)
    if state:
        raise RuntimeError(words.decode())


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        data += connection.recv(length - len(data))
    return bytes(data)


def _cpu(process: int) -> float:
    """Return the seconds of CPU that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


if __name__ == "__main__":
    main()
