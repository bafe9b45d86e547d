"""Errors of a remote store that refuses: its own words, the option that was meant, and no secret."""

from __future__ import annotations

import pytest

from pennon.errors import StoreError
from pennon.io.remote_errors import masked, translate
from pennon.io.remote_options import parse_options

NO_BUCKET = (
    "Generic S3 error: Error performing list request: Client error with status 404 Not Found: "
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message>"
    "<Key>key-hush</Key></Error>"
)


@pytest.mark.parametrize("text", [NO_BUCKET, NO_BUCKET.replace("\n", "")])
def test_the_code_and_message_of_a_store_s_xml_are_shown(text: str) -> None:
    said = masked(text, ("hush-hush",))
    assert said.endswith("404 Not Found: NoSuchBucket The specified bucket does not exist")
    assert "<" not in said


def test_messages_of_a_store_show_no_secret() -> None:
    said = masked(NO_BUCKET.replace("The specified", "The hush-hush"), ("hush-hush",))
    assert "hush" not in said
    assert masked("first line\nsecond line", ()) == "first line"


def test_http_endpoint_error_suggests_allow_http() -> None:
    error = ValueError("Generic S3 error: GET http://localhost:1/b - HTTP error: builder error")
    found = translate(error, "x", ())
    assert isinstance(found, StoreError)
    assert "allow_http='true'" in str(found)


def test_misspelt_storage_option_warning_suggests_the_nearest() -> None:
    known = {"endpoint", "aws_region"}
    with pytest.warns(UserWarning, match=r"'endpoin' is not known .*did you mean 'endpoint'\?"):
        parse_options({"endpoin": "http://x"}, lambda key, _: key in known)
    with pytest.warns(UserWarning, match=r"'aws_reigon' .*did you mean 'aws_region'\?"):
        parse_options({"aws_reigon": "x"}, lambda key, _: key in known)
