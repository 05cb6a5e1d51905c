"""What the app is started with: its arguments, and what of them and of the environment follows for visitors."""

import argparse
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from explorer.own_module.command import add_arguments
from explorer.state.limits import NO_LIMITS, PUBLIC_LIMITS, VisitorLimits
from explorer.tracing.offered_models import ANY_NAME
from explorer.web.shared.opened import check_address
from model.offloading import bytes_in, device_of

DTYPES = ("float32", "bfloat16", "float16")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="See a transformer language model at work, in the browser.")
    parser.add_argument("--host", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 7860, or the next free one)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="where models run")
    parser.add_argument(
        "--dtype",
        choices=("auto", *DTYPES),
        default="auto",
        help="what models of others compute with (default: auto, the type that their weights are stored in)",
    )
    parser.add_argument(
        "--device-map",
        choices=("auto",),
        help="spread models that are too large for one device over GPUs, then the CPU, then a disk (takes accelerate)",
    )
    parser.add_argument(
        "--max-memory",
        type=memory_of_devices,
        metavar="cuda:0=10GiB,cpu=2GiB,…",
        help="that they may take there (default: what is free)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="NAME_OR_PATH",
        default="llama-fables",
        help="model shown first: one in checkpoints/, a folder that Hugging Face's transformers saved or a file in it, "
        "a .bin file of llama2.c with its tok*.bin beside it, or owner/name on the Hugging Face Hub, which is "
        "downloaded once",
    )
    parser.add_argument(
        "--most-new-tokens",
        type=at_least_one,
        metavar="N",
        help=f"that Generate writes (default: {NO_LIMITS.tokens}; {PUBLIC_LIMITS.tokens} with --public)",
    )
    parser.add_argument(
        "--most-seconds",
        type=at_least_one,
        metavar="S",
        help=f"of one Generate (default: no limit; {PUBLIC_LIMITS.seconds:g} with --public)",
    )
    parser.add_argument(
        "--allowed-hosts",
        nargs="+",
        metavar="NAME",
        default=[],
        help="names of this server besides the machine's own, such as lab.example.org or *.example.org; * for any",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="least that is told on the terminal (default: info)",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="visitors cannot have models of the Hugging Face Hub opened"
    )
    parser.add_argument(
        "--models",
        metavar="OWNER/NAME,…",
        type=lambda names: frozenset(filter(None, names.split(","))),
        help="models of the Hugging Face Hub that visitors may have opened (default: any where only this machine is "
        "served, none where others are)",
    )
    parser.add_argument("--lessons", metavar="DIR", type=Path, help="folder with lessons of your own, besides ours")
    parser.add_argument(
        "--module",
        metavar="FILE.py:CLASS",
        help="your own TransformerLM, shown beside the reference with the same weights; the file is run",
    )
    add_arguments(parser)
    parser.add_argument(
        "--public",
        action="store_true",
        help=f"everybody may come: at most {PUBLIC_LIMITS.tokens} tokens and {PUBLIC_LIMITS.seconds:g} seconds of a "
        f"text, {PUBLIC_LIMITS.prompts} prompts a minute of a visitor, {PUBLIC_LIMITS.request_bytes >> 10} kB of a "
        f"request, {PUBLIC_LIMITS.rooms} rooms an hour with {PUBLIC_LIMITS.people} people each, no models but those "
        "here and in --models (set by itself on a Space)",
    )
    parser.add_argument("--share", action="store_true", help="also open a public address, through Gradio's servers")
    parser.add_argument(
        "--workers",
        type=workers,
        metavar="N or HOST:PORT,…",
        default=1,
        help="processes to serve from, each with models of its own; one that dies is started anew; or where such "
        "processes are, that were started elsewhere (default: 1)",
    )
    parser.add_argument(
        "--shared",
        metavar="redis://HOST or file:PATH",
        type=shared,
        default="",
        help="where answers are that several processes share: a Redis, for several machines, which takes its package "
        "for Python, or a file of this machine (default: nowhere; with --workers N a temporary file)",
    )
    options = parser.parse_args(arguments)
    if options.share and options.workers != 1:
        parser.error("--share opens an address of one process: leave --workers out")
    options.port = options.port or int(os.environ.get("PORT") or 0) or None  # which other hosts than Spaces say
    return options


def hub_names(options: argparse.Namespace) -> Collection[str]:
    """Which models of the hub visitors may have opened: any only where nobody else reaches the page."""
    if options.no_open:
        return ()
    if options.models is not None:
        return options.models
    host = options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    has_others = is_public(options) or options.share or host not in ("127.0.0.1", "localhost", "::1")
    return () if has_others else ANY_NAME


def is_public(options: argparse.Namespace) -> bool:
    return options.public or "SPACE_ID" in os.environ


def limits(options: argparse.Namespace) -> VisitorLimits:
    """What visitors may have at most: what is said, or else what a public server lets them have, or all there is."""
    most = PUBLIC_LIMITS if is_public(options) else NO_LIMITS
    tokens = min(options.most_new_tokens or most.tokens, NO_LIMITS.tokens)
    return replace(most, tokens=tokens, seconds=options.most_seconds or most.seconds)


def at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def workers(text: str) -> int | list[tuple[str, int]]:
    """How many, or the hosts and ports of those that run elsewhere."""
    if text.lstrip("-").isdigit():
        return at_least_one(text)
    found = [each.strip().rpartition(":") for each in text.split(",")]
    if not all(host and port.isdigit() for host, _colon, port in found):
        raise argparse.ArgumentTypeError(f"must be a number, or HOST:PORT,HOST:PORT, got {text!r}")
    return [(host, int(port)) for host, _colon, port in found]


def shared(text: str) -> str:
    try:
        if text:
            check_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def memory_of_devices(text: str) -> dict[int | str, int]:
    """Of "cpu=2GiB,disk=40GB" how many bytes each device may take."""
    try:
        pairs = [part.partition("=") for part in text.split(",") if part]
        return {device_of(device.strip()): bytes_in(size) for device, _equals, size in pairs}
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
