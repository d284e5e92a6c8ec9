"""Schemas: from dataclasses, from DDL, their JSON, and what changed between two."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.flow.schemas.changes import difference, only_adds
from headgate.flow.schemas.schema import (
    MISSING,
    Field,
    ListOf,
    MapOf,
    Primitive,
    Schema,
    Struct,
    Type,
    Unknown,
    key_kind,
    schema_of,
)

BIGINT, STRING = Primitive("bigint"), Primitive("string")
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True) | st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=5
)
PRIMITIVES = st.sampled_from(
    ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
     "date", "timestamp", "decimal(10,0)", "decimal(38,18)"]
).map(Primitive)  # fmt: skip


def fields_of(types: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Field, ...]]:
    return st.lists(
        st.builds(Field, NAMES, types, st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each.name.lower(),
    ).map(tuple)


DDL_TYPES: st.SearchStrategy[Type] = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        inner.map(lambda each: ListOf(each, nullable=True)),
        inner.map(lambda each: MapOf(each, nullable=True)),
        fields_of(inner).map(Struct),
    ),
    max_leaves=5,
)
SCHEMAS = fields_of(DDL_TYPES).map(Schema)


@dataclass
class Address:
    street: str
    number: int | None


@dataclass
class Everything:
    whole: int
    real: float
    text: str
    flag: bool
    raw: bytes
    at: datetime
    day: date
    money: Decimal
    maybe: int | None
    perhaps: Optional[str]  # noqa: UP045 - the older spelling is allowed too
    tags: list[str]
    holes: list[int | None]
    weights: dict[str, float]
    home: Address
    others: list[Address] | None
    noted: Annotated[int, "a note"]


@dataclass
class Defaults:
    count: int = 3
    ratio: float = 1
    name: str = "none"
    on: bool = True
    maybe: int | None = None
    slip: int = None  # type: ignore[assignment]
    tags: list[str] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=lambda: {"a": 1})
    home: Address = field(default_factory=lambda: Address("main", None))


@dataclass
class Node:
    next: Node | None


def refusal_of(source: Any) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        schema_of(source)
    assert caught.value.hint
    return caught.value


def test_a_dataclass_gives_its_fields_in_order_with_their_types() -> None:
    address = Struct((Field("street", STRING, False), Field("number", BIGINT, True)))
    assert schema_of(Everything).fields == (
        Field("whole", BIGINT, False),
        Field("real", Primitive("double"), False),
        Field("text", STRING, False),
        Field("flag", Primitive("boolean"), False),
        Field("raw", Primitive("binary"), False),
        Field("at", Primitive("timestamp"), False),
        Field("day", Primitive("date"), False),
        Field("money", Primitive("decimal(38,18)"), False),
        Field("maybe", BIGINT, True),
        Field("perhaps", STRING, True),
        Field("tags", ListOf(STRING, False), False),
        Field("holes", ListOf(BIGINT, True), False),
        Field("weights", MapOf(Primitive("double"), False), False),
        Field("home", address, False),
        Field("others", ListOf(address, False), True),
        Field("noted", BIGINT, False),
    )


def test_a_default_stands_for_a_field_that_a_record_leaves_out() -> None:
    defaults = {each.name: each.default for each in schema_of(Defaults).fields}
    assert defaults == {
        "count": 3,
        "ratio": 1.0,
        "name": "none",
        "on": True,
        "maybe": None,
        "slip": None,
        "tags": [],
        "weights": {"a": 1.0},
        "home": {"street": "main", "number": None},
    }
    assert all(each.default is MISSING for each in schema_of(Everything).fields)


def test_a_default_of_none_makes_a_field_nullable() -> None:
    slip = schema_of(Defaults).find("slip")
    assert slip is not None
    assert slip.nullable


def test_a_field_of_an_unknown_type_is_refused_by_class_and_field() -> None:
    @dataclass
    class Odd:
        fine: int
        odd: complex

    error = refusal_of(Odd)
    assert error.code == "SCHEMA_UNSUPPORTED"
    assert "Odd.odd" in error.message
    assert "complex" in error.message


@pytest.mark.parametrize(
    "annotation",
    [int | str, tuple[int, int], dict[int, str], list, dict, set[int], Any, None, int | str | None],
)
def test_a_type_with_no_column_for_it_is_refused(annotation: Any) -> None:
    odd: Any = dataclass(type("Odd", (), {"__annotations__": {"odd": annotation}}))
    error = refusal_of(odd)
    assert error.code == "SCHEMA_UNSUPPORTED"
    assert "Odd.odd" in error.message


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(int, "3"), (int, True), (int, 2**63), (float, float("nan")), (str, 3), (bool, 1),
     (date, date(2020, 1, 1))],
)  # fmt: skip
def test_a_default_that_does_not_fit_its_field_is_refused(annotation: Any, default: Any) -> None:
    odd: Any = dataclass(type("Odd", (), {"__annotations__": {"odd": annotation}, "odd": default}))
    error = refusal_of(odd)
    assert error.code == "SCHEMA_UNSUPPORTED"
    assert "Odd.odd" in error.message


def test_a_dataclass_that_holds_itself_is_refused() -> None:
    error = refusal_of(Node)
    assert error.code == "SCHEMA_UNSUPPORTED"
    assert "contains itself" in error.message


def test_annotations_that_cannot_be_resolved_are_refused() -> None:
    @dataclass
    class Lost:
        field: NoSuchThing  # type: ignore[name-defined]  # noqa: F821

    assert "NoSuchThing" in refusal_of(Lost).message


@pytest.mark.parametrize("source", [int, 3, None, Address("a", 1)])
def test_what_is_no_dataclass_ddl_or_schema_is_refused(source: Any) -> None:
    assert refusal_of(source).code == "SCHEMA_UNSUPPORTED"


def test_two_names_that_differ_by_case_alone_are_refused() -> None:
    error = refusal_of("userId INT, userid INT")
    assert error.code == "DUPLICATE_COLUMN"
    assert "'userId' and 'userid'" in error.message


def test_ddl_gives_the_fields_it_declares() -> None:
    ddl = """id BIGINT NOT NULL, name STRING COMMENT 'a, b', tags ARRAY<STRING>,
        addr STRUCT<street: STRING, no: INT NOT NULL>, m MAP<STRING, DOUBLE>,
        `odd name` array<array<int>>, d DECIMAL(10, 2) COMMENT "x" NOT NULL"""
    assert schema_of(ddl).fields == (
        Field("id", BIGINT, False),
        Field("name", STRING, True),
        Field("tags", ListOf(STRING, True), True),
        Field(
            "addr",
            Struct((Field("street", STRING, True), Field("no", Primitive("int"), False))),
            True,
        ),
        Field("m", MapOf(Primitive("double"), True), True),
        Field("odd name", ListOf(ListOf(Primitive("int"), True), True), True),
        Field("d", Primitive("decimal(10,2)"), False),
    )


@pytest.mark.parametrize(
    ("alias", "name"),
    [("LONG", "bigint"), ("Integer", "int"), ("short", "smallint"), ("BYTE", "tinyint"),
     ("REAL", "float"), ("NUMERIC", "decimal(10,0)"), ("DEC(5)", "decimal(5,0)"),
     ("TIMESTAMP_LTZ", "timestamp")],
)  # fmt: skip
def test_an_alias_is_the_type_it_stands_for(alias: str, name: str) -> None:
    assert schema_of(f"x {alias}").fields[0].type == Primitive(name)


@pytest.mark.parametrize(
    ("ddl", "place", "actual", "expected"),
    [
        ("", 1, "the end", "a column's name"),
        ("id", 3, "the end", "a type"),
        ("id BIGNT", 4, "'BIGNT'", "a type"),
        ("id INT,", 8, "the end", "a column's name"),
        ("id INT name STRING", 8, "'name'", "',' or the end"),
        ("id INT NOT", 11, "the end", "NULL"),
        ("a ARRAY<INT", 12, "the end", "'>'"),
        ("a ARRAY", 8, "the end", "'<'"),
        ("m MAP<INT, INT>", 7, "'INT'", "STRING"),
        ("d DECIMAL(39)", 11, "'39'", "a number from 1 to 38"),
        ("d DECIMAL(5,6)", 13, "'6'", "a number from 0 to 5"),
        ("id INT; x INT", 7, "';'", ""),
        ("id INT COMMENT x", 16, "'x'", "a comment"),
        ("s STRUCT<>", 10, "'>'", "a column's name"),
        ("id `INT`", 4, "'`INT`'", "a type"),
    ],
)
def test_bad_ddl_is_refused_with_the_place(
    ddl: str, place: int, actual: str, expected: str
) -> None:
    error = refusal_of(ddl)
    assert error.code == "SCHEMA_BAD_DDL"
    assert f"at character {place}: expected {expected}" in error.message
    assert error.message.endswith(f", got {actual}")


def test_a_misspelt_type_is_answered_with_the_nearest() -> None:
    assert refusal_of("id BIGNT").hint == "did you mean 'bigint'?"


@given(st.text(alphabet="abIN T<>(),:`'\\\";1٣", max_size=20))
def test_any_text_is_ddl_or_is_refused_by_code(text: str) -> None:
    code = ""
    try:
        schema_of(text)
    except HeadgateError as error:
        code = error.code
    assert code in ("", "SCHEMA_BAD_DDL", "DUPLICATE_COLUMN")


@given(SCHEMAS)
def test_a_schema_reads_back_from_its_ddl(schema: Schema) -> None:
    assert schema_of(schema.to_ddl()) == schema


@given(SCHEMAS)
def test_a_schema_reads_back_from_its_json(schema: Schema) -> None:
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize("source", [Everything, Defaults])
def test_defaults_and_unknown_types_survive_json(source: type) -> None:
    schema = schema_of(source).with_fields(Field("later", Unknown(), True))
    assert Schema.from_json(schema.to_json()) == schema


@given(SCHEMAS)
def test_every_path_of_a_schema_is_found(schema: Schema) -> None:
    assert all(schema.find(path) is not None for path in schema.paths)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("s.x", Field("x", BIGINT, True)),
        ("m.any", Field("any", BIGINT, True)),
        ("l.x", Field("x", ListOf(BIGINT, True), True)),
        ("`odd name`", Field("odd name", STRING, True)),
        ("s.y", None),
        ("S.x", None),
        ("id.x", None),
        ("nothing", None),
        ("a + b", None),
        ("", None),
    ],
)
def test_a_dotted_path_leads_into_structs_maps_and_lists(path: str, found: Field | None) -> None:
    schema = schema_of(
        "id BIGINT, s STRUCT<x: BIGINT NOT NULL>, m MAP<STRING, BIGINT>, "
        "l ARRAY<STRUCT<x: BIGINT>>, `odd name` STRING"
    )
    assert schema.find(path) == found


def test_an_unknown_column_is_answered_with_the_nearest() -> None:
    schema = schema_of("userId BIGINT, addr STRUCT<street: STRING>")
    with pytest.raises(HeadgateError) as caught:
        schema.get("addr.stret", what="cannot do it")
    assert caught.value.code == "UNKNOWN_COLUMN"
    assert caught.value.hint == "did you mean 'addr.street'?"


def test_with_fields_replaces_in_place_and_adds_at_the_end() -> None:
    schema = schema_of("a INT, b INT").with_fields(
        Field("a", STRING, True), Field("c", STRING, True)
    )
    assert schema.to_ddl() == "a STRING, b INT, c STRING"


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [("TINYINT", "integer"), ("BIGINT", "integer"), ("STRING", "string"), ("BOOLEAN", "boolean"),
     ("DATE", "date"), ("TIMESTAMP", "timestamp"), ("DECIMAL(5,1)", "decimal"), ("DOUBLE", None),
     ("FLOAT", None), ("BINARY", None), ("ARRAY<INT>", None), ("STRUCT<x: INT>", None)],
)  # fmt: skip
def test_a_key_has_a_kind_that_tells_what_it_equals(ddl: str, kind: str | None) -> None:
    assert key_kind(schema_of(f"x {ddl}").fields[0].type) == kind


CHANGES = [
    ("a INT", "a INT", [], True),
    ("a INT", "a INT, b STRING", ["b was added (STRING)"], True),
    ("a INT", "b STRING, a INT", ["b was added (STRING)"], True),
    ("a INT", "a INT, b STRING NOT NULL", ["b was added (STRING NOT NULL)"], False),
    ("a INT, b INT", "a INT", ["b was removed (INT)"], False),
    ("a INT", "a BIGINT", ["a changed its type from INT to BIGINT"], False),
    ("a INT NOT NULL", "a INT", ["a may be null now"], False),
    ("a INT", "a INT NOT NULL", ["a must not be null now"], False),
    ("a INT, b INT", "b INT, a INT", ["the order changed from a, b to b, a"], False),
    ("s STRUCT<x: INT>", "s STRUCT<x: INT, y: INT>", ["s.y was added (INT)"], False),
    ("s STRUCT<x: INT>", "s INT", ["s changed its type from STRUCT<x: INT> to INT"], False),
]


@pytest.mark.parametrize(("old", "new", "lines", "adds"), CHANGES)
def test_what_changed_is_told_and_judged(old: str, new: str, lines: list[str], adds: bool) -> None:
    assert difference(schema_of(old), schema_of(new)) == lines
    assert only_adds(schema_of(old), schema_of(new)) is adds


def test_an_added_column_with_a_default_reads_old_rows() -> None:
    old = schema_of("a INT")
    new = old.with_fields(Field("b", BIGINT, False, 7))
    assert only_adds(old, new)
    assert difference(old, new) == ["b was added (BIGINT NOT NULL, default 7)"]


def test_a_changed_default_is_told_and_breaks_nothing() -> None:
    old, new = (Schema((Field("a", BIGINT, False, default),)) for default in (1, 2))
    assert difference(old, new) == ["a changed its default from 1 to 2"]
    assert only_adds(old, new)


def test_other_nulls_inside_a_list_are_told() -> None:
    old, new = (Schema((Field("a", ListOf(BIGINT, holes), False),)) for holes in (True, False))
    assert difference(old, new) == [
        "a changed its type from ARRAY<BIGINT> to ARRAY<BIGINT> with different nullability inside"
    ]
    assert not only_adds(old, new)


@given(SCHEMAS, SCHEMAS)
def test_schemas_differ_exactly_where_there_is_something_to_tell(a: Schema, b: Schema) -> None:
    assert difference(a, a) == []
    assert only_adds(a, a)
    assert (difference(a, b) == []) == (a == b)


def test_a_field_can_be_hashed_whatever_its_default() -> None:
    assert len({*schema_of(Defaults).fields}) == 9
