"""The command line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app import parse_arguments
from explorer.state.settings import LIMITS


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


def test_a_server_may_be_given_names_and_told_what_to_tell():
    options = parse_arguments(["--allowed-hosts", "lab.example", "*.school.example", "--log-level", "debug"])
    assert (options.allowed_hosts, options.log_level) == (["lab.example", "*.school.example"], "debug")
    assert (parse_arguments([]).allowed_hosts, parse_arguments([]).log_level) == ([], "info")


@pytest.mark.exhaustive
def test_a_server_that_is_told_to_end_leaves_no_files(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-u", "app.py", "--port", str(port)],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert any("Running on local URL" in line for line in server.stdout)
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=60)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
