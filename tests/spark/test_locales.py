"""Jobs in any locale: names of files, letters and numbers mean the same as in every other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import Bench, bag, refused

from headgate import Flow

# The JVM's own way to say LC_ALL=tr_TR.UTF-8: machines need not have that locale.
_TURKISH = f"{os.environ['JAVA_TOOL_OPTIONS']} -Duser.language=tr -Duser.country=TR"


def test_a_job_in_a_posix_or_turkish_locale_reads_and_writes_as_in_any_other(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "hömé")
    bench.put("in", [{"text": "éi"}], path="ü.jsonl")
    bench.put("in", [{"text": "title"}], path="größe/日本.jsonl")
    done = _run(bench, _letters(), LC_ALL="C", JAVA_TOOL_OPTIONS=_TURKISH)
    assert done["state"] == "FINISHED", done
    assert bench.bag("out") == bag([{"text": "ÉI"}, {"text": "TITLE"}])
    # The same topic goes on under UTF-8, from where it was.
    bench.put("in", [{"text": "ß"}], path="ö.jsonl")
    bench.run(_letters())
    assert bench.bag("out") == bag([{"text": "ÉI"}, {"text": "TITLE"}, {"text": "SS"}])
    assert (bench.home / "jobs" / "letters" / "logs" / "spark.log").exists()


def test_a_file_whose_name_is_not_utf8_is_refused_before_it_is_numbered(bench: Bench) -> None:
    good = bench.put("in", [{"text": "a"}])
    bad = os.fsencode(good.parent) + b"/\xfc.jsonl"
    Path(os.fsdecode(bad)).write_bytes(b'{"text": "b"}\n')
    with refused("PATH_NOT_UTF8"):
        bench.run(_letters(), restart="none")
    assert not (good.parent / "_ledger").exists()
    Path(os.fsdecode(bad)).rename(good.parent / "ü.jsonl")
    bench.run(_letters())
    assert bench.bag("out") == bag([{"text": "A"}, {"text": "B"}])


def _letters() -> Flow:
    flow = Flow("letters")
    flow.stream("in", "text STRING NOT NULL").select("upper(text) AS text").to("out")
    return flow


def _run(bench: Bench, flow: Flow, **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "headgate", "run", str(bench.flow_file(flow)), "--json"]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home), "--until-caught-up"]
    done = subprocess.run(
        [*command, "--restart", "none"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
