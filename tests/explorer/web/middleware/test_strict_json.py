"""The strict JSON reader for requests, compared with Python's own."""

import json

import pytest

from explorer.errors import UserError
from explorer.web.middleware.request_types import parse_json


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, 2.5, -0.0, "é", null, true]}', " 7 ", '"\\ud83d\\ude00"', '{"a": {"a": 1}, "b": 1e308}', "\ufeff{}"],
)
def test_what_is_json_is_read_as_python_reads_it(text):
    assert parse_json(text.encode()) == json.loads(text.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not from character 0 on"),
        (b'{"a": 1', "not from character 7 on"),
        (b"[1, 2,]", "not from character 6 on"),
        (b'{"a": NaN}', "no number NaN"),
        (b"[-Infinity]", "no number -Infinity"),
        (b"[1e999]", "no number 1e999"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' twice"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
        (b"9" * 5000, "too many digits"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
    ],
    ids=range(12),
)
def test_what_is_none_is_refused_in_a_sentence(body, sentence):
    with pytest.raises(UserError, match=sentence):
        parse_json(body)


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "\ud800\ud800", "\udc00\ud800", "\ud83d\ude00\ud83d", "\\ud800"]
)
def test_a_lone_surrogate_is_read_as_a_replacement_character(text):
    (value,) = parse_json(json.dumps({text: text})[:-1].encode() + b"}").values()
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert value == expected and value.encode()
    assert len(value) == len(text.replace("\ud83d\ude00", "x"))
