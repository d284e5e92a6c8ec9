"""Schemas from DDL, as Spark writes it: `id BIGINT NOT NULL, tags ARRAY<STRING>`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean, unquote
from headgate.flow.schemas.types import PRIMITIVES, Field, ListOf, MapOf, Primitive, Struct, Type

_ALIASES = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_KNOWN = sorted({*PRIMITIVES, *_ALIASES, *_DECIMALS, "array", "map", "struct"})
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z0-9_]+|`(?:[^`]|``)+`)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<mark>[<>(),:]))"
)
_HINT = "write columns as in: id BIGINT NOT NULL, tags ARRAY<STRING>, at STRUCT<x: INT>"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


def parse_ddl(ddl: str) -> tuple[Field, ...]:
    """Return the fields that `ddl` declares; an error names the position."""
    return _Parser(ddl).parse()


class _Parser:
    """Reads tokens from left to right, with one method per grammar rule."""

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
        self._tokens = self._split()
        self._next = 0

    def parse(self) -> tuple[Field, ...]:
        fields = self._fields()
        if self._peek().kind != "end":
            raise self._bad("',' or the end")
        return fields

    def _fields(self) -> tuple[Field, ...]:
        fields = [self._field()]
        while self._take_mark(","):
            fields.append(self._field())
        return tuple(fields)

    def _field(self) -> Field:
        if self._peek().kind != "word":
            raise self._bad("a column's name")
        name = unquote(self._take().text)
        self._take_mark(":")
        type_ = self._type()
        nullable = True
        while True:
            if self._peek().is_word("not"):
                self._take()
                self._expect_word("null")
                nullable = False
            elif self._peek().is_word("comment"):
                self._take()
                if self._peek().kind != "text":
                    raise self._bad("a comment in quotes")
                self._take()
            else:
                return Field(name, type_, nullable)

    def _type(self) -> Type:
        token = self._peek()
        word = token.text.lower()
        if token.kind != "word" or word not in _KNOWN:
            raise self._bad("a type", did_you_mean(token.text, _KNOWN) if token.text else _HINT)
        self._take()
        match word:
            case "array":
                return self._inside(lambda: ListOf(self._type(), nullable=True))
            case "map":
                return self._inside(self._map)
            case "struct":
                return self._inside(lambda: Struct(self._fields()))
            case _ if word in _DECIMALS:
                return self._decimal()
            case _:
                return Primitive(_ALIASES.get(word, word))

    def _map(self) -> MapOf:
        if not self._peek().is_word("string"):
            raise self._bad("STRING, since map keys are strings")
        self._take()
        self._expect_mark(",")
        return MapOf(self._type(), nullable=True)

    def _inside(self, read: Callable[[], Type]) -> Type:
        self._expect_mark("<")
        type_ = read()
        self._expect_mark(">")
        return type_

    def _decimal(self) -> Primitive:
        precision, scale = 10, 0
        if self._take_mark("("):
            precision = self._number(1, 38)
            if self._take_mark(","):
                scale = self._number(0, precision)
            self._expect_mark(")")
        return Primitive(f"decimal({precision},{scale})")

    def _number(self, least: int, most: int) -> int:
        text = self._peek().text
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise self._bad(f"a number from {least} to {most}")
        return int(self._take().text)

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take_mark(self, mark: str) -> bool:
        is_mark = self._peek().kind == "mark" and self._peek().text == mark
        self._next += is_mark
        return is_mark

    def _expect_mark(self, mark: str) -> None:
        if not self._take_mark(mark):
            raise self._bad(f"{mark!r}")

    def _expect_word(self, word: str) -> None:
        if not self._peek().is_word(word):
            raise self._bad(word.upper())
        self._take()

    def _split(self) -> list[_Token]:
        tokens, place, end = [], 0, len(self._ddl.rstrip())
        while place < end:
            match = _TOKEN.match(self._ddl, place)
            if match is None:
                rest = self._ddl[place:].lstrip()
                place = len(self._ddl) - len(rest)
                raise self._refusal(_Token("bad", rest[0], place), "a name, a type or ','", _HINT)
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            place = match.end()
        return [*tokens, _Token("end", "", end)]

    def _bad(self, needed: str, hint: str = _HINT) -> HeadgateError:
        return self._refusal(self._peek(), needed, hint)

    def _refusal(self, token: _Token, needed: str, hint: str) -> HeadgateError:
        actual = repr(token.text) if token.text else "the end"
        return HeadgateError(
            "SCHEMA_BAD_DDL",
            f"cannot read schema {self._ddl!r} at character {token.place + 1}: expected {needed}, "
            f"got {actual}",
            hint=hint,
        )
