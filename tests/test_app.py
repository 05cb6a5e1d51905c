"""Command line of the app."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app import main
from explorer.options import allowed_hub_models, parse_arguments, user_limits
from explorer.state.generation_settings import NO_LIMITS, PUBLIC_LIMITS, RANGES
from explorer.tracing.model_catalog import ANY_NAME


def test_without_arguments_only_the_page_limits_what_is_written():
    allowed = user_limits(parse_arguments([]))
    assert allowed == NO_LIMITS and (allowed.tokens, allowed.seconds) == (RANGES["max_new_tokens"][1], float("inf"))


def test_a_public_server_may_be_limited():
    allowed = user_limits(parse_arguments(["--max-new-tokens", "40", "--max-seconds", "5"]))
    assert allowed == replace(NO_LIMITS, tokens=40, seconds=5)


@pytest.mark.parametrize(
    ("arguments", "environment", "allowed"),
    [
        (["--public"], {}, PUBLIC_LIMITS),
        ([], {"SPACE_ID": "somebody/explorer"}, PUBLIC_LIMITS),
        (["--public", "--max-new-tokens", "9999"], {}, replace(PUBLIC_LIMITS, tokens=NO_LIMITS.tokens)),
        (["--public", "--max-seconds", "3"], {}, replace(PUBLIC_LIMITS, seconds=3)),
    ],
)
def test_a_public_server_is_limited_by_itself(monkeypatch, arguments, environment, allowed):
    monkeypatch.delenv("SPACE_ID", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert user_limits(parse_arguments(arguments)) == allowed


@pytest.mark.parametrize("argument", ["--max-new-tokens", "--max-seconds"])
@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_limit_is_one_or_more(argument, value, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([argument, value])
    assert argument in capsys.readouterr().err


def test_models_may_be_spread_over_devices():
    options = parse_arguments(["--device-map", "auto", "--max-memory", "cuda:1=10GiB,cpu=2GiB,disk=40GB"])
    assert (options.device_map, options.max_memory) == ("auto", {1: 10 << 30, "cpu": 2 << 30, "disk": 40 * 10**9})
    assert (parse_arguments([]).device_map, parse_arguments([]).max_memory) == (None, None)


@pytest.mark.parametrize(
    ("value", "told"),
    [("cpu=much", "a size is a number of bytes"), ("tpu=1GiB", "a device is cuda:0"), ("cpu", "a size")],
)
def test_a_size_that_is_none_is_told(value, told, capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--device-map", "auto", "--max-memory", value])
    assert told in capsys.readouterr().err


def test_memory_of_devices_is_of_a_map(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app.py", "--max-memory", "cpu=2GiB"])
    with pytest.raises(SystemExit, match="--max-memory needs --device-map auto"):
        main()


def test_a_server_may_be_given_names_and_told_what_to_tell():
    options = parse_arguments(["--allowed-hosts", "lab.example", "*.school.example", "--log-level", "debug"])
    assert (options.allowed_hosts, options.log_level) == (["lab.example", "*.school.example"], "debug")
    assert (parse_arguments([]).allowed_hosts, parse_arguments([]).log_level) == ([], "info")


@pytest.mark.parametrize(
    ("arguments", "environment", "names"),
    [
        ([], {}, ANY_NAME),
        (["--host", "127.0.0.1"], {}, ANY_NAME),
        (["--no-open"], {}, ()),
        (["--host", "0.0.0.0"], {}, ()),
        (["--share"], {}, ()),
        (["--public"], {}, ()),
        ([], {"SPACE_ID": "somebody/explorer"}, ()),
        ([], {"GRADIO_SERVER_NAME": "0.0.0.0"}, ()),
        (["--host", "0.0.0.0", "--models", "a/b,c/d"], {}, {"a/b", "c/d"}),
        (["--models", "a/b"], {"SPACE_ID": "somebody/explorer"}, {"a/b"}),
        (["--models", "a/b", "--no-open"], {}, ()),
    ],
)
def test_visitors_open_any_model_only_where_nobody_else_is_served(monkeypatch, arguments, environment, names):
    for name in ("SPACE_ID", "GRADIO_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert allowed_hub_models(parse_arguments(arguments)) == names


@pytest.mark.parametrize("argument", ["--store", "--shared"])
def test_a_store_is_a_redis(argument):
    assert parse_arguments([argument, "redis://lab.example:7/1"]).store == "redis://lab.example:7/1"
    assert parse_arguments([]).store == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--workers", "3"], "start several behind nginx, see docs/deploy.md"),
        (["--workers"], "start several behind nginx, see docs/deploy.md"),
        (["--workers", "worker-0:7860,worker-1:7860"], "start several behind nginx, see docs/deploy.md"),
        (["--store", "file:kept.db"], "give redis://HOST or rediss://HOST (docs/deploy.md), not 'file:kept.db'"),
        (["--store", "http://a"], "give redis://HOST"),
        (["--store", "redis://"], "give redis://HOST"),
    ],
)
def test_what_nobody_can_serve_from_is_told(capsys, arguments, told):
    with pytest.raises(SystemExit):
        parse_arguments(arguments)
    assert told in capsys.readouterr().err


def test_without_the_package_a_redis_is_told_before_anybody_is_served(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app.py", "--store", "redis://127.0.0.1"])
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SystemExit, match="error: --store redis://… needs the Python package"):
        main()


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


def test_earlier_names_of_flags_work(capsys):
    options = parse_arguments(["--most-new-tokens", "40", "--most-seconds", "5", "--shared", "redis://a"])
    assert (options.max_new_tokens, options.max_seconds, options.store) == (40, 5, "redis://a")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "--most-" not in capsys.readouterr().out
