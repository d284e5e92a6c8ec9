"""The process that calls a flow's functions, for a task of Spark; it ends with its socket.

The other end is `io.headgate.kernel.functions.Worker`. Integers are big endian.
"""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.functions.calling.async_calls import AsyncCalls, Patience
from headgate.functions.calling.calls import (
    Call,
    FunctionFailed,
    Results,
    RowError,
    get_call,
    twice,
)
from headgate.functions.calling.messages import MessageTooLarge, check_size
from headgate.functions.processes.broadcasts import BroadcastShape
from headgate.functions.processes.calls import ProcessCalls, ProcessShape
from headgate.functions.processes.connected import process_calls
from headgate.functions.processes.wire import Fetch, Reply, read_batch
from headgate.functions.states.pages import FetchPages
from headgate.functions.stored import ProcessCallback, load, present_python


@dataclass(frozen=True, slots=True)
class Served:
    """A function by its kind: a call with its columns, an async one, or a process."""

    name: str
    call: tuple[Call, pa.Schema] | AsyncCalls | ProcessCalls


_REPLY = struct.Struct(">iiiii")
_REQUEST = struct.Struct(">iii")
_INT = struct.Struct(">i")
# How many containers a call may leave before Python looks for cycles among them. A call makes
# two for each of its 4,096 rows and drops them at its end; Python's 700 would look at them all
# several times. Between calls its own number is in force.
_WITHIN_CALL = 10_000


def main(path: str) -> None:
    """Serve calls until the socket closes."""
    faulthandler.enable()
    # The driver decides what Ctrl-C means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        with connection.makefile("rwb", buffering=256 * 1024) as file:
            stream = cast("BinaryIO", file)
            calls = _load(stream)
            # Modules stay for the life of the process: the collector can skip them.
            gc.collect()
            gc.freeze()
            while calls is not None and _serve(stream, calls):
                pass


def _load(stream: BinaryIO) -> dict[int, Served] | None:
    (length,) = _INT.unpack(_read(stream, _INT.size))
    message = json.loads(_read(stream, length))
    if message["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (message["memory"], message["memory"]))
    sys.path[:0] = [folder for folder in message["path"] if folder not in sys.path]
    if message["version"] != present_python():
        what = f"{sys.executable} is Python {present_python()}, and the job runs with Python"
        _fail(stream, "FUNCTION_OTHER_PYTHON", f"{what} {message['version']}")
        return None
    calls = {}
    for function in message["functions"]:
        try:
            call = _prepare(function, check=message["check"])
            calls[function["address"]] = Served(function["name"], call)
        except HeadgateError as error:
            _fail(stream, error.code, f"{function['name']}: {error.message}")
            return None
        except ModuleNotFoundError as error:
            _fail(stream, "PACKAGE_MISSING", f"{function['name']} needs a module: {error}")
            return None
        except BaseException as error:  # noqa: BLE001 - an import may raise anything
            text = f"{function['name']} cannot be loaded: {type(error).__name__}: {error}"
            _fail(stream, "FUNCTION_NOT_LOADED", text)
            return None
    _send(stream, _results(Results(0, None, None)))
    return calls


def _prepare(
    function: dict[str, Any], *, check: bool
) -> tuple[Call, pa.Schema] | AsyncCalls | ProcessCalls:
    given = _schema(function["given"])
    callback = load(base64.b64decode(function["code"]))
    if isinstance(callback, ProcessCallback):
        return _prepare_process(function, callback, given, check=check)
    returned = _schema(function["returned"]) if "returned" in function else None
    if function["kind"] == "CALL":
        assert returned is not None
        # Answers from outside differ, so a second call would prove nothing.
        patience = Patience(function["capacity"], function["timeout"] / 1000, function["retries"])
        return AsyncCalls(callback, function["name"], given, returned, patience)
    call = get_call(
        function["kind"],
        callback,
        name=function["name"],
        given=given,
        returned=returned,
        dead_letters=function["dead_letters"],
    )
    return twice(call, function["name"]) if check else call, given


def _prepare_process(
    function: dict[str, Any], callback: ProcessCallback, given: pa.Schema, *, check: bool
) -> ProcessCalls:
    shape = ProcessShape(
        given,
        keys=_schema(function["keys"]),
        record=_schema(function["record"]),
        pages=[_schema(page) for page in function["pages"]],
        outputs=[(output["port"], _schema(output["schema"])) for output in function["outputs"]],
        has_timers=function["timers"],
        right=_schema(function["right"]) if "right" in function else None,
        broadcast=BroadcastShape(_schema(function["broadcast"]), tuple(function["broadcast_key"]))
        if "broadcast" in function
        else None,
    )
    return process_calls(
        callback,
        shape,
        name=function["name"],
        uid=function["uid"],
        dead_letters=function["dead_letters"],
        check=check,
    )


def _schema(message: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(message)))


def _serve(stream: BinaryIO, calls: dict[int, Served]) -> bool:
    """Answer one call; return False once the socket has closed."""
    header = stream.read(_REQUEST.size)
    if not header:
        return False
    address, _, length = _REQUEST.unpack(header)
    served = calls[address]
    body = _read(stream, length)
    failure: tuple[str, str] | None = None
    process = os.getpid()
    usual = gc.get_threshold()[0]
    gc.set_threshold(usual and max(usual, _WITHIN_CALL))
    try:
        if isinstance(served.call, ProcessCalls):
            parts = _reply(served.call(body, _fetching(stream, served.call, process)))
        elif isinstance(served.call, AsyncCalls):
            parts = _results(served.call(body, lambda: _say_alive(stream, process)))
        else:
            call, given = served.call
            parts = _results(call(pa.ipc.read_record_batch(pa.py_buffer(body), given)))
    except FunctionFailed as error:
        failure = error.code, str(error)
    except MessageTooLarge as error:
        failure = error.code, f"{served.name}: {error}"
    except MemoryError:
        failure = "FUNCTION_FAILED", "a function needs more memory than the worker may have"
    except Exception:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit, or CancelledError of asyncio
        failure = "FUNCTION_FAILED", f"a function raised {type(error).__name__}: {error}"
    gc.set_threshold(usual)
    if os.getpid() != process:
        # A function forked, and this is its child; only the worker answers.
        os._exit(0)
    if failure is not None:
        _fail(stream, *failure)
    else:
        _send(stream, parts)
    return True


def _fetching(stream: BinaryIO, served: ProcessCalls, process: int) -> FetchPages:
    """Return how pages are fetched from the kernel in the middle of a call."""

    def fetch(wanted: Fetch) -> pa.RecordBatch:
        if os.getpid() != process:
            os._exit(0)
        body = wanted.body()
        _send(stream, [_REPLY.pack(2, len(wanted.keys), wanted.var, 0, len(body)), body])
        (length,) = _INT.unpack(_read(stream, _INT.size))
        return read_batch(_read(stream, length), served.pages[wanted.var])

    return fetch


def _say_alive(stream: BinaryIO, process: int) -> None:
    """Tell the kernel that a call goes on, which gives it more time."""
    if os.getpid() == process:
        stream.write(_REPLY.pack(3, 0, 0, 0, 0))
        stream.flush()


def _reply(reply: Reply) -> list[bytes]:
    """Return the message with what a process answers."""
    words = _errors([RowError(row, text) for row, text in reply.errors])
    body = reply.body()
    return [_REPLY.pack(0, reply.rows, -1, len(words), len(body)), words, body]


def _results(results: Results) -> list[bytes]:
    """Return the message with what a call returned."""
    body = b"" if results.batch is None else results.batch.serialize()
    check_size(len(body), "its answer")
    origins = results.origins
    words = _errors(results.errors)
    count = -1 if origins is None else len(origins)
    head = _REPLY.pack(0, results.rows, count, len(words), len(body))
    return [head, struct.pack(f">{count}i", *origins) if origins else b"", words, body]


def _errors(errors: Sequence[RowError]) -> bytes:
    return json.dumps([asdict(error) for error in errors]).encode() if errors else b""


def _send(stream: BinaryIO, parts: Sequence[bytes]) -> None:
    for part in parts:
        stream.write(part)
    stream.flush()


def _fail(stream: BinaryIO, code: str, message: str) -> None:
    words = json.dumps({"code": code, "message": message}).encode()
    _send(stream, [_REPLY.pack(1, 0, -1, len(words), 0), words])


def _read(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("the socket closed within a message")
    return data


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        main(sys.argv[1])
