"""The command line."""

import pytest

from app import parse_arguments
from explorer.settings import LIMITS


def test_without_arguments_only_the_page_limits_what_is_written():
    options = parse_arguments([])
    assert (options.most_new_tokens, options.most_seconds) == (LIMITS["max_new_tokens"][1], float("inf"))


def test_a_public_server_may_be_limited():
    options = parse_arguments(["--most-new-tokens", "40", "--most-seconds", "5"])
    assert (options.most_new_tokens, options.most_seconds) == (40, 5)


@pytest.mark.parametrize("argument", ["--most-new-tokens", "--most-seconds"])
@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_limit_is_one_or_more(argument, value, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([argument, value])
    assert argument in capsys.readouterr().err
