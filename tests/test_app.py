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
from explorer.state.generation_settings import RANGES
from explorer.state.limits import NO_LIMITS, PUBLIC_LIMITS
from explorer.tracing.model_catalog import ANY_NAME
from explorer.web.workers.worker import Worker


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


def test_workers_are_a_number_or_places():
    assert parse_arguments([]).workers == 1 and parse_arguments(["--workers", "3"]).workers == 3
    workers = parse_arguments(["--workers", "explorer-0.workers:7860, 10.0.0.7:80"]).workers
    assert workers == [("explorer-0.workers", 7860), ("10.0.0.7", 80)]


@pytest.fixture
def served_from(monkeypatch) -> list:
    """List of what `main` would have served: workers, host and port."""
    served = []
    monkeypatch.setattr("app.serve", lambda *given: served.extend(given))
    for name in ("GRADIO_SERVER_NAME", "GRADIO_SERVER_PORT", "GRADIO_ROOT_PATH", "PORT"):
        monkeypatch.delenv(name, raising=False)
    return served


def test_so_many_processes_are_started_as_are_said_and_share_a_file(monkeypatch, served_from):
    monkeypatch.setattr(sys, "argv", ["app.py", "--workers", "3", "--port", "80", "--host", "0.0.0.0"])
    monkeypatch.setenv("GRADIO_ROOT_PATH", "/explorer")
    main()
    workers, host, port = served_from
    assert (host, port) == ("0.0.0.0", 80) and len({worker.port for worker in workers}) == 3
    assert [(worker.number, worker.path) for worker in workers] == [(n, f"/explorer/w{n}") for n in range(3)]
    (command,) = {tuple(worker.command) for worker in workers}
    options = parse_arguments(list(command[2:]))
    assert options.store.startswith("file:") and Path(options.store.removeprefix("file:")).parent.is_dir()
    assert options.no_open and options.allowed_hosts == ["0.0.0.0"]


def test_processes_share_what_is_said(monkeypatch, served_from, tmp_path):
    monkeypatch.setattr(sys, "argv", ["app.py", "--workers", "2", "--store", f"file:{tmp_path}/kept.db"])
    main()
    assert parse_arguments(served_from[0][0].command[2:]).store == f"file:{tmp_path}/kept.db"
    assert (tmp_path / "kept.db").exists()  # before any of them is started


def test_a_front_of_others_starts_none_of_its_own(monkeypatch, served_from):
    worker_list = "worker-0.workers:7860,worker-1.workers:7861"
    monkeypatch.setattr(sys, "argv", ["app.py", "--workers", worker_list])
    main()
    workers, host, port = served_from
    assert [(type(worker), worker.number, worker.host, worker.port) for worker in workers] == [
        (Worker, 0, "worker-0.workers", 7860),
        (Worker, 1, "worker-1.workers", 7861),
    ]
    assert (host, port) == ("127.0.0.1", 7860)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--workers", "0"], "must be 1 or more"),
        (["--workers", "-2"], "must be 1 or more"),
        (["--workers", "lab.example"], "must be a number, or HOST:PORT"),
        (["--workers", "a:1,:2"], "must be a number, or HOST:PORT"),
        (["--workers", "2", "--share"], "remove --workers"),
        (["--workers", "a:1", "--share"], "remove --workers"),
        (["--store", "http://a"], "must be redis://host, rediss://host or file:PATH"),
        (["--store", "redis://"], "must be redis://host, rediss://host or file:PATH"),
    ],
)
def test_what_nobody_can_serve_from_is_told(capsys, arguments, told):
    with pytest.raises(SystemExit):
        parse_arguments(arguments)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--workers", "2"]])
def test_without_the_package_a_redis_is_told_before_anybody_is_served(monkeypatch, more):
    monkeypatch.setattr(sys, "argv", ["app.py", "--store", "redis://127.0.0.1", *more])
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
    options = parse_arguments(["--most-new-tokens", "40", "--most-seconds", "5", "--shared", "file:a"])
    assert (options.max_new_tokens, options.max_seconds, options.store) == (40, 5, "file:a")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "--most-" not in capsys.readouterr().out
