"""A child process for tests: it does what its first message says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from headgate.jobs.processes.parent import Parent, become_orphan, kill_group


def main() -> None:
    parent = Parent()
    order = parent.receive()
    match order["do"]:
        case "echo":
            parent.listen(lambda message: parent.send({"echo": message}), kill_group)
            threading.Event().wait()
        case "answer":
            print("what a flow prints ü")
            parent.answer({"pid": os.getpid(), "session": os.getsid(0), "text": order.get("text")})
        case "die":
            sys.stderr.write("first line\nthe last word ü\n")
            sys.stderr.flush()
            os.kill(os.getpid(), order["signal"]) if "signal" in order else os._exit(order["code"])
        case "raise":
            raise RuntimeError("out of paper")
        case "rubbish":
            os.write(parent._replies or 0, bytes(order["bytes"]))
            time.sleep(600)
        case "half":
            parent.send({"whole": True})
            os.write(parent._replies or 0, b'{"ha')
            os.kill(os.getpid(), signal.SIGKILL)
        case "grandchild":
            # Forked, so that it holds the pipe, as a flow with multiprocessing does.
            if not os.fork():
                os.setsid()
                time.sleep(order["seconds"])
                os._exit(0)
            parent.send({"grandchild": True})
            os._exit(0)
        case "program":
            child = subprocess.Popen(["sleep", "600"])
            parent.send({"pid": child.pid})
            child.wait()
        case "orphan":
            become_orphan()
            if order.get("dies"):
                sys.stderr.write("no room left\n")
                sys.stderr.flush()
                os._exit(1)
            parent.answer({"pid": os.getpid()})
            time.sleep(600)
        case "wait-for-parent":
            parent.listen(lambda _message: None, lambda: os._exit(1))
            parent.send({"pid": os.getpid()})
            time.sleep(600)


if __name__ == "__main__":
    main()
