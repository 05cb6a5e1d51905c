"""Command line of the app."""

import argparse
import ast
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app import main
from explorer import __version__, cli, serving
from explorer.cli_options import allowed_hub_models, make_parser, parse_arguments, user_limits
from explorer.state.generation_settings import NO_LIMITS, PUBLIC_LIMITS, RANGES
from explorer.tracing.model_catalog import ANY_NAME
from explorer.tracing.model_library import MAX_TRACE_CACHE_BYTES

ROOT = Path(__file__).parent.parent
COMMON_FLAGS = ["--checkpoint", "--port", "--host", "--device", "--share"]


def test_defaults_limit_only_by_page():
    allowed = user_limits(parse_arguments([]))
    assert allowed == NO_LIMITS and (allowed.tokens, allowed.seconds) == (RANGES["max_new_tokens"][1], float("inf"))


def test_limits_can_be_set():
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
def test_public_server_has_default_limits(monkeypatch, arguments, environment, allowed):
    monkeypatch.delenv("SPACE_ID", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert user_limits(parse_arguments(arguments)) == allowed


@pytest.mark.parametrize("argument", ["--max-new-tokens", "--max-seconds"])
@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_limits_are_at_least_one(argument, value, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([argument, value])
    assert argument in capsys.readouterr().err


def test_device_map_and_memory_are_parsed():
    options = parse_arguments(["--device-map", "auto", "--max-memory", "cuda:1=10GiB,cpu=2GiB,disk=40GB"])
    assert (options.device_map, options.max_memory) == ("auto", {1: 10 << 30, "cpu": 2 << 30, "disk": 40 * 10**9})
    assert (parse_arguments([]).device_map, parse_arguments([]).max_memory) == (None, None)


@pytest.mark.parametrize(
    ("value", "told"),
    [("cpu=much", "a size is a number of bytes"), ("tpu=1GiB", "a device is cuda:0"), ("cpu", "a size")],
)
def test_invalid_memory_size_is_refused(value, told, capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--device-map", "auto", "--max-memory", value])
    assert told in capsys.readouterr().err


def test_max_memory_needs_a_device_map(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app.py", "--max-memory", "cpu=2GiB"])
    with pytest.raises(SystemExit, match="--max-memory needs --device-map auto"):
        main()


def test_allowed_hosts_and_log_level_are_parsed():
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
def test_only_a_local_server_opens_any_model(monkeypatch, arguments, environment, names):
    for name in ("SPACE_ID", "GRADIO_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert allowed_hub_models(parse_arguments(arguments)) == names


@pytest.mark.parametrize("argument", ["--store", "--shared"])
def test_store_is_a_redis_url(argument):
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
def test_unusable_server_options_are_refused(capsys, arguments, told):
    with pytest.raises(SystemExit):
        parse_arguments(arguments)
    assert told in capsys.readouterr().err


def test_missing_redis_package_is_reported_at_start(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app.py", "--store", "redis://127.0.0.1"])
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SystemExit, match="error: --store redis://… needs the Python package"):
        main()


@pytest.mark.exhaustive
def test_terminated_server_leaves_no_files(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-u", "app.py", "--port", str(port)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert any("Running on local URL" in line for line in server.stdout)
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=60)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_former_flag_names_still_work(capsys):
    options = parse_arguments(["--most-new-tokens", "40", "--most-seconds", "5", "--shared", "redis://a"])
    assert (options.max_new_tokens, options.max_seconds, options.store) == (40, 5, "redis://a")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "--most-" not in capsys.readouterr().out


def documented_flags() -> dict[str, str]:
    """Return the flags of docs/cli.md with their defaults."""
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    rows = re.findall(r"^\| `(--[\w-]+)[^`]*` \| ([^|]+) \|", text, re.MULTILINE)
    return {flag: default.strip().strip("`") for flag, default in rows}


def test_cli_guide_lists_every_flag_and_default():
    visible = [action for action in make_parser()._actions if action.help != argparse.SUPPRESS]
    actions = {action.option_strings[-1]: action for action in visible}
    defaults = {
        flag: "off" if action.const is True else str(action.default or "")
        for flag, action in actions.items()
        if not isinstance(action, argparse._HelpAction | argparse._VersionAction)
    }
    documented = documented_flags()
    assert list(documented) == [*defaults]
    for flag, default in defaults.items():  # without a default, the guide describes the behaviour
        assert documented[flag] if default in ("", "[]") else documented[flag] == default, flag


def test_help_fits_a_screen_and_starts_with_common_flags(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 80
    flags = re.findall(r"^  (?:-h, )?(--[\w-]+)", "\n".join(lines), re.MULTILINE)
    assert flags[:5] == COMMON_FLAGS and set(flags) == {*documented_flags(), "--help", "--version"}


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse_arguments(["--version"])
    assert capsys.readouterr().out == f"transformerlm-explorer {__version__}\n"


def start_app(monkeypatch, *arguments: str) -> str:
    """Start the app, which exits at once, and return its message."""
    monkeypatch.setattr(sys, "argv", ["app.py", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return str(end.value.code)


def test_taken_port_is_reported(monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert start_app(monkeypatch, "--port", str(port)).startswith(f"error: port {port} is taken: choose another")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "error: ports run from 1 to 65535, got --port 70000"),
        (["--host", "192.0.2.1"], "error: cannot listen on 192.0.2.1: "),
        (["--host", "no such host"], "error: cannot listen on no such host: "),
    ],
)
def test_unusable_address_is_reported(monkeypatch, arguments, said):
    assert start_app(monkeypatch, *arguments).startswith(said)


def test_missing_temporary_folder_is_reported(monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(cli.tempfile, "gettempdir", nowhere)
    assert "set TMPDIR to one that can" in start_app(monkeypatch)


def test_old_python_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    assert start_app(monkeypatch).startswith("error: Python 3.11 or later is needed, this is 3.9: ")
    for name in ("app.py", "explorer/__init__.py", "explorer/cli.py"):  # files that old Pythons parse
        ast.parse((ROOT / name).read_text("utf-8"), feature_version=(3, 8))


def test_minimum_python_matches_package():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'requires-python = ">={".".join(map(str, cli.MIN_PYTHON))}"' in text


def test_out_of_memory_is_reported(monkeypatch):
    def serve(options, version_notes):
        raise MemoryError

    monkeypatch.setattr(serving, "serve", serve)
    assert start_app(monkeypatch).startswith("error: memory ran out: ")


def test_failed_start_lists_mismatched_versions(monkeypatch, tmp_path):
    assert cli.mismatched_versions() == []
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("torch==1.13.*  # old\nno-such-package>=2\nnumpy>=1\n", encoding="utf-8")
    monkeypatch.setattr(cli, "REQUIREMENTS", requirements)
    torch, missing = cli.mismatched_versions()
    assert torch.startswith("torch is 2.") and torch.endswith(", tried with ==1.13.*")
    assert missing == "no-such-package is missing"
    monkeypatch.setitem(sys.modules, "explorer.serving", None)  # as if one of its imports failed
    message = start_app(monkeypatch)
    assert message.startswith("error: ModuleNotFoundError: ") and torch in message
    assert message.endswith("install what is needed, pip install -r requirements.txt")


def test_caches_are_smaller_with_little_memory():
    library = serving.ModelLibrary("cpu", **serving.small_cache_limits(400 << 20))
    memory = library.memory()
    assert memory["models_limit"] + memory["traces_limit"] + library.max_trace_bytes < 200 << 20
    assert serving.small_cache_limits(64 << 30)["max_trace_cache_bytes"] == MAX_TRACE_CACHE_BYTES
