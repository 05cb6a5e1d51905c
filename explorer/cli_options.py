"""The app's command-line arguments, and the user limits that follow from them and the environment."""

import argparse
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from explorer import __version__
from explorer.diagnosis.command_line import add_arguments
from explorer.state.generation_settings import NO_LIMITS, PUBLIC_LIMITS, UserLimits
from explorer.tracing.model_catalog import ANY_NAME
from explorer.web.key_value_stores import check_store_address
from model.weight_placement import parse_bytes, parse_device

VERSION = f"transformerlm-explorer {__version__}"
DTYPES = ("float32", "bfloat16", "float16")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the app's command line."""
    options = make_parser().parse_args(arguments)
    options.port = options.port or int(os.environ.get("PORT") or 0) or None  # which other hosts than Spaces say
    return options


class WideHelpFormatter(argparse.HelpFormatter):
    """Help with a wide column of flags, so that all of it is seen at once."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=28)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the app's command line; docs/cli.md says more of each flag."""
    parser = argparse.ArgumentParser(
        description="Inspect a transformer language model in the browser.",
        usage="%(prog)s [options]",
        formatter_class=WideHelpFormatter,
        epilog="More on each: docs/cli.md.",
        add_help=False,
    )
    add_common_flags(parser.add_argument_group("common"))
    add_model_flags(parser.add_argument_group("models"))
    own = parser.add_argument_group("your own files; those of --views and --module are run")
    add_own_file_flags(own)
    add_arguments(own)
    add_server_flags(parser.add_argument_group("serving others"))
    about = parser.add_argument_group("about")
    about.add_argument("-h", "--help", action="help", help="show this help")
    about.add_argument("--version", action="version", version=VERSION, help="show the version")
    add_former_flag_names(parser)
    return parser


def add_common_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags that most people want."""
    group.add_argument(
        "--checkpoint",
        metavar="NAME_OR_PATH",
        default="llama-fables",
        help="model to open first, also of the Hugging Face Hub (default: llama-fables)",
    )
    group.add_argument("--port", type=int, metavar="N", help="port (default: 7860, or the next free one)")
    group.add_argument("--host", metavar="NAME", help="address to listen on (default: this machine)")
    group.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        metavar="NAME",
        default="auto",
        help="device of the models: auto, cpu, cuda or mps (default: auto)",
    )
    group.add_argument("--share", action="store_true", help="also a public link through Gradio's servers")


def add_model_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags about models: their type and placement, and which users may open."""
    group.add_argument(
        "--dtype",
        choices=("auto", *DTYPES),
        metavar="NAME",
        default="auto",
        help=f"data type of models of others: {', '.join(DTYPES)} (default: auto, as stored)",
    )
    group.add_argument(
        "--device-map", choices=("auto",), metavar="auto", help="spread a large model over GPUs, memory and disk"
    )
    group.add_argument(
        "--max-memory",
        type=parse_device_memory,
        metavar="cpu=2GiB,…",
        help="memory of each device, for --device-map (default: what is free)",
    )
    group.add_argument(
        "--models",
        metavar="OWNER/NAME,…",
        type=lambda names: frozenset(filter(None, names.split(","))),
        help="models of the Hub that users may open (default: any if only this machine is served, else none)",
    )
    group.add_argument("--no-open", action="store_true", help="users cannot open models of the Hub, paths or files")


def add_own_file_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags about files of the user's own."""
    group.add_argument(
        "--views",
        metavar="FILE.py|DIR",
        action="append",
        type=parse_existing_path,
        default=[],
        help="view shown as a tab, or a folder of them; repeatable",
    )
    group.add_argument("--lessons", metavar="DIR", type=Path, help="folder with additional lessons")
    group.add_argument(
        "--adapter", metavar="DIR", help="a LoRA adapter that peft saved, compared with the base model that it names"
    )
    group.add_argument(
        "--module", metavar="FILE_OR_FOLDER[:CLASS]", help="your own TransformerLM, compared with the reference"
    )


def add_server_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags about a server for others."""
    group.add_argument(
        "--public", action="store_true", help="limits on prompts, tokens, seconds and rooms (default on Spaces)"
    )
    group.add_argument(
        "--max-new-tokens",
        type=parse_positive_int,
        metavar="N",
        help=f"tokens per Generate (default: {NO_LIMITS.tokens}; public: {PUBLIC_LIMITS.tokens})",
    )
    group.add_argument(
        "--max-seconds",
        type=parse_positive_int,
        metavar="S",
        help=f"seconds per Generate (default: any; public: {PUBLIC_LIMITS.seconds:g})",
    )
    group.add_argument(
        "--allowed-hosts",
        nargs="+",
        metavar="NAME",
        default=[],
        help="further host names to answer to; * for any",
    )
    group.add_argument(
        "--store",
        metavar="redis://HOST",
        type=parse_store_address,
        default="",
        help="Redis that several processes share",
    )
    group.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        metavar="NAME",
        default="info",
        help="least level of messages: debug, info, warning or error (default: info)",
    )


def parse_existing_path(text: str) -> Path:
    """Parse a path; ArgumentTypeError if nothing is there."""
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"there is no file or folder {text}")
    return Path(text)


def add_former_flag_names(parser: argparse.ArgumentParser) -> None:
    """Add hidden flags: earlier names, which scripts still use, and one that only says what to do instead."""
    hidden = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    for flag, name, parse in (
        ("--most-new-tokens", "max_new_tokens", parse_positive_int),
        ("--most-seconds", "max_seconds", parse_positive_int),
        ("--shared", "store", parse_store_address),
    ):
        parser.add_argument(flag, dest=name, type=parse, **hidden)
    parser.add_argument("--workers", nargs="?", const="", type=reject_workers_flag, **hidden)


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


def reject_workers_flag(text: str) -> None:
    """Raise ArgumentTypeError: the app is one process."""
    raise argparse.ArgumentTypeError("the app is one process: start several behind nginx, see docs/deploy.md")


def parse_store_address(text: str) -> str:
    """Parse the address of the shared store; ArgumentTypeError if it is invalid."""
    try:
        if text:
            check_store_address(text)
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
