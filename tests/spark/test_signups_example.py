"""The flow of examples/signups on embedded topics: its outputs are what plain Python makes."""

from __future__ import annotations

import json
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

from bench import Bench, bag

FOLDER = Path(__file__).parents[2] / "examples" / "signups"
READ = {
    "2026-01-05": date(2026, 1, 5),
    "05.02.2026": date(2026, 2, 5),
    "03/14/2026": date(2026, 3, 14),
    " 2026-12-31 ": date(2026, 12, 31),
}
INTERESTS = ("streaming", "SQL", " Compilers ", "proofs", "STREAMING")


def forms() -> list[dict[str, Any]]:
    given = [json.loads(line) for line in (FOLDER / "signups.jsonl").read_text().splitlines()]
    pick = random.Random(22)
    for number in range(10, 400):
        email = pick.choice(["Ada@Example.com ", "x@y.org", "no address", "a b@c.de"])
        joined = pick.choice([*READ, "some day", "31.02.2026"])
        words = pick.sample(INTERESTS, pick.randrange(len(INTERESTS)))
        given.append(
            {"id": number, "email": email, "joined": joined, "interests": ";,".join(words)}
        )
    return given


def test_sign_ups_are_cleaned_and_routed_as_plain_python_does_it(bench: Bench) -> None:
    people: list[dict[str, Any]] = []
    unreadable = []
    for form in forms():
        email = form["email"].strip().lower()
        if " " in email or email.count("@") != 1 or form["joined"] not in READ:
            unreadable.append(form["id"])
            continue
        words = {word.strip().lower() for word in re.split("[;,]", form.get("interests") or "")}
        people.append(
            {
                "id": form["id"],
                "email": email,
                "joined": READ[form["joined"]].isoformat(),
                "interests": sorted(words - {""}),
            }
        )
    bench.put("signups", forms())
    bench.run(FOLDER / "flow.py", parallelism=2)
    assert bench.bag("people") == bag(people)
    rows = [(person, word) for person in people for word in person["interests"]]
    assert bench.bag("streaming-fans") == bag(
        {"id": person["id"], "email": person["email"]}
        for person, word in rows
        if word == "streaming"
    )
    assert bench.bag("other-interests") == bag(
        {"id": person["id"], "email": person["email"], "interest": word}
        for person, word in rows
        if word != "streaming"
    )
    letters = bench.read("unreadable-signups")
    assert {letter["code"] for letter in letters} == {"FUNCTION_FAILED"}
    assert {letter["source"] for letter in letters} == {"map 'clean'"}
    assert len(letters) == len(unreadable)
