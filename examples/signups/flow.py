"""Cleans sign-ups of a form that people fill in by hand, and routes them by interest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from headgate import Flow

MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}")
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")


@dataclass
class Form:
    """A form as it was filled in."""

    id: int
    email: str
    joined: str
    interests: str | None = None


@dataclass
class Person:
    """A person who signed up."""

    id: int
    email: str
    joined: str
    interests: list[str]


@dataclass
class Interest:
    """One of a person's interests."""

    id: int
    email: str
    interest: str


def clean(form: Form) -> Person:
    """Return a form in one spelling, or raise for one that nobody can read."""
    email = form.email.strip().lower()
    if not MAIL.fullmatch(email):
        raise ValueError(f"not a mail address: {form.email!r}")
    words = re.split(r"[,;]", form.interests or "")
    interests = sorted({word.strip().lower() for word in words if word.strip()})
    return Person(form.id, email, read_date(form.joined), interests)


def read_date(text: str) -> str:
    """Return a date as ISO 8601 writes it."""
    for form in DATES:
        try:
            return datetime.strptime(text.strip(), form).date().isoformat()
        except ValueError:
            continue
    raise ValueError(f"not a date: {text!r}")


def spread(person: Person) -> Iterator[Interest]:
    """Yield a row for each of a person's interests."""
    for interest in person.interests:
        yield Interest(person.id, person.email, interest)


flow = Flow("signups", dead_letters="unreadable-signups")
people = flow.stream("signups", Form).map("clean", clean, on_error="dead-letter")
interests = people.flat_map("interests", spread)

people.to("people")
interests.filter(lambda row: row.interest == "streaming").select("id", "email").to("streaming-fans")
interests.filter(lambda row: row.interest != "streaming").to("other-interests")
