"""The one error type: its fields, its exit codes, its text."""

from __future__ import annotations

import pickle

import pytest

from headgate.errors import Domain, HeadgateError


@pytest.mark.parametrize(
    ("domain", "code"), [(Domain.USER, 2), (Domain.EXTERNAL, 3), (Domain.INTERNAL, 70)]
)
def test_the_domain_decides_the_exit_code(domain: Domain, code: int) -> None:
    assert HeadgateError("X", "y", domain=domain).exit_code == code


def test_an_error_is_the_users_and_final_unless_it_says_otherwise() -> None:
    error = HeadgateError("X", "y")
    assert (error.domain, error.retryable, error.hint) == (Domain.USER, False, "")


def test_as_dict_has_the_three_fields_that_are_shown() -> None:
    error = HeadgateError("BAD_NAME", "cannot", hint="try", domain=Domain.EXTERNAL)
    assert error.as_dict() == {"code": "BAD_NAME", "message": "cannot", "hint": "try"}


def test_the_text_holds_code_message_and_hint() -> None:
    assert str(HeadgateError("A_CODE", "cannot do x: y", hint="do z")) == (
        "A_CODE cannot do x: y | hint: do z"
    )
    assert str(HeadgateError("A_CODE", "cannot do x: y")) == "A_CODE cannot do x: y"


def test_an_error_survives_pickling_with_all_its_fields() -> None:
    error = HeadgateError("A", "b", hint="c", domain=Domain.EXTERNAL, retryable=True)
    again = pickle.loads(pickle.dumps(error))
    assert again.as_dict() == error.as_dict()
    assert (again.domain, again.retryable) == (Domain.EXTERNAL, True)


def test_wrapping_keeps_the_cause() -> None:
    cause = ValueError("why")
    with pytest.raises(HeadgateError) as caught:
        raise HeadgateError("A", "b") from cause
    assert caught.value.__cause__ is cause
