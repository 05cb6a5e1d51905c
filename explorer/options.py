"""The app's command-line arguments, and the user limits that follow from them and the environment."""

import argparse
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from explorer.diagnosis.command import add_arguments
from explorer.state.generation_settings import NO_LIMITS, PUBLIC_LIMITS, UserLimits
from explorer.tracing.model_catalog import ANY_NAME
from explorer.web.stores import check_address
from model.offloading import parse_bytes, parse_device

DTYPES = ("float32", "bfloat16", "float16")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the app's command line."""
    parser = argparse.ArgumentParser(
        description="Serve the TransformerLM Explorer: inspect a transformer language model in the browser."
    )
    parser.add_argument("--host", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 7860, or the next free one)")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="auto",
        help="device that models run on (default: auto)",
    )
    parser.add_argument(
        "--dtype",
        choices=("auto", *DTYPES),
        default="auto",
        help="data type of external models (default: auto, the type of their stored weights)",
    )
    parser.add_argument(
        "--device-map",
        choices=("auto",),
        help="spread models that are too large for one device over GPUs, then CPU memory, then disk (needs the "
        "accelerate package)",
    )
    parser.add_argument(
        "--max-memory",
        type=parse_device_memory,
        metavar="cuda:0=10GiB,cpu=2GiB,…",
        help="memory limit per device, for --device-map auto (default: free memory)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="NAME_OR_PATH",
        default="llama-fables",
        help="model to open first: a name in checkpoints/, a folder saved by Hugging Face transformers or a file in "
        "it, a .bin file of llama2.c with its tok*.bin in the same folder, or owner/name on the Hugging Face "
        "Hub, which is downloaded once (default: llama-fables)",
    )
    parser.add_argument(
        "--max-new-tokens",
        type=parse_positive_int,
        metavar="N",
        help=f"maximum number of tokens per Generate (default: {NO_LIMITS.tokens}; {PUBLIC_LIMITS.tokens} with "
        "--public)",
    )
    parser.add_argument(
        "--max-seconds",
        type=parse_positive_int,
        metavar="S",
        help=f"maximum number of seconds per Generate (default: no limit; {PUBLIC_LIMITS.seconds:g} with --public)",
    )
    parser.add_argument(
        "--allowed-hosts",
        nargs="+",
        metavar="NAME",
        default=[],
        help="additional host names to accept in the Host header, such as lab.example.org or *.example.org; * "
        "accepts any",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="minimum level of log messages (default: info)",
    )
    parser.add_argument("--no-open", action="store_true", help="users cannot open models of the Hugging Face Hub")
    parser.add_argument(
        "--models",
        metavar="OWNER/NAME,…",
        type=lambda names: frozenset(filter(None, names.split(","))),
        help="models of the Hugging Face Hub that users may open (default: any if only this machine can reach the "
        "server, otherwise none)",
    )
    parser.add_argument("--lessons", metavar="DIR", type=Path, help="folder with additional lessons of your own")
    parser.add_argument(
        "--views",
        metavar="FILE.py or DIR",
        action="append",
        type=parse_existing_path,
        default=[],
        help="view of your own, shown as a tab: a Python file or package with a VIEW, or a folder of them; can be "
        "repeated; this executes the file with all rights of the app (see explorer/views/README.md)",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.py:CLASS",
        help="your own TransformerLM, compared with the reference model with the same weights; this executes the file",
    )
    add_arguments(parser)
    parser.add_argument(
        "--public",
        action="store_true",
        help=f"public server, with limits: {PUBLIC_LIMITS.tokens} tokens and {PUBLIC_LIMITS.seconds:g} seconds per "
        f"generation, {PUBLIC_LIMITS.prompts} prompts per minute and user, {PUBLIC_LIMITS.request_bytes >> 10} "
        f"kB per request, {PUBLIC_LIMITS.rooms} new rooms per hour and user with {PUBLIC_LIMITS.people} people "
        "each, and only local models and those in --models (default on Hugging Face Spaces)",
    )
    parser.add_argument("--share", action="store_true", help="also create a public link through Gradio's servers")
    parser.add_argument(
        "--store",
        metavar="redis://HOST",
        type=parse_store,
        default="",
        help="Redis server by which several processes share cached answers and rooms, see docs/deploy.md (needs the "
        "redis package; default: none)",
    )
    add_old_names(parser)
    options = parser.parse_args(arguments)
    options.port = options.port or int(os.environ.get("PORT") or 0) or None  # which other hosts than Spaces say
    return options


def parse_existing_path(text: str) -> Path:
    """Parse a path; ArgumentTypeError if nothing is there."""
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"there is no file or folder {text}")
    return Path(text)


def add_old_names(parser: argparse.ArgumentParser) -> None:
    """Add hidden flags: earlier names, which scripts still use, and one that only says what to do instead."""
    hidden = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    for flag, name, parse in (
        ("--most-new-tokens", "max_new_tokens", parse_positive_int),
        ("--most-seconds", "max_seconds", parse_positive_int),
        ("--shared", "store", parse_store),
    ):
        parser.add_argument(flag, dest=name, type=parse, **hidden)
    parser.add_argument("--workers", nargs="?", const="", type=refuse_workers, **hidden)


def allowed_hub_models(options: argparse.Namespace) -> Collection[str]:
    """Return the Hub models that users may open: those of --models, or any if only this machine is served."""
    if options.no_open:
        return ()
    if options.models is not None:
        return options.models
    host = options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    has_others = is_public(options) or options.share or host not in ("127.0.0.1", "localhost", "::1")
    return () if has_others else ANY_NAME


def is_public(options: argparse.Namespace) -> bool:
    """Return whether the app is served to the public: by option, or on Spaces."""
    return options.public or "SPACE_ID" in os.environ


def user_limits(options: argparse.Namespace) -> UserLimits:
    """Return the limits per user: the options, or else those of a public server, or none."""
    limits = PUBLIC_LIMITS if is_public(options) else NO_LIMITS
    tokens = min(options.max_new_tokens or limits.tokens, NO_LIMITS.tokens)
    return replace(limits, tokens=tokens, seconds=options.max_seconds or limits.seconds)


def parse_positive_int(text: str) -> int:
    """Parse an integer from 1 on; ArgumentTypeError for others."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def refuse_workers(text: str) -> None:
    """Raise ArgumentTypeError: the app is one process."""
    raise argparse.ArgumentTypeError("the app is one process: start several behind nginx, see docs/deploy.md")


def parse_store(text: str) -> str:
    """Parse the address of the shared store; ArgumentTypeError if it is invalid."""
    try:
        if text:
            check_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def parse_device_memory(text: str) -> dict[int | str, int]:
    """Parse "cpu=2GiB,disk=40GB" to the bytes that each device may use."""
    try:
        pairs = [part.partition("=") for part in text.split(",") if part]
        return {parse_device(device.strip()): parse_bytes(size) for device, _equals, size in pairs}
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
