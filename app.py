"""Starts the TransformerLM Explorer: `python app.py`, then open the address it prints."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
# Of numpy's products, which are small here: several visitors' threads would wait for each other in the midst of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from explorer.lessons.course.blocks import LessonError
from explorer.own_module.command import add_arguments
from explorer.own_module.serving import opened
from explorer.state.settings import NO_LIMITS, PUBLIC_LIMITS, WritingLimits
from explorer.tracing.cores import set_threads
from explorer.tracing.library import Library
from explorer.tracing.offered_models import ANY_NAME
from explorer.web.page import Page
from explorer.web.workers.serving import serve
from model import CheckpointError
from model.checkpoint import is_checkpoint


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="See a transformer language model at work, in the browser.")
    parser.add_argument("--host", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 7860, or the next free one)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="where models run")
    parser.add_argument(
        "--checkpoint",
        metavar="NAME_OR_PATH",
        default="llama-fables",
        help="model shown first: one in checkpoints/, a folder that Hugging Face's transformers saved, a .bin file "
        "of llama2.c with its tok*.bin beside it, or owner/name on the Hugging Face Hub, which is downloaded once",
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
    parser.add_argument(
        "--public",
        action="store_true",
        help=f"everybody may come: at most {PUBLIC_LIMITS.tokens} tokens and {PUBLIC_LIMITS.seconds:g} seconds of a "
        f"text, {PUBLIC_LIMITS.prompts} prompts a minute of a visitor, {PUBLIC_LIMITS.request_bytes >> 10} kB of a "
        "request, no models but those here and in --models (set by itself on a Space)",
    )
    parser.add_argument("--lessons", metavar="DIR", type=Path, help="folder with lessons of your own, besides ours")
    parser.add_argument(
        "--module",
        metavar="FILE.py:CLASS",
        help="your own TransformerLM, shown beside the reference with the same weights; the file is run",
    )
    add_arguments(parser)
    parser.add_argument("--share", action="store_true", help="also open a public address, through Gradio's servers")
    parser.add_argument(
        "--workers",
        type=at_least_one,
        metavar="N",
        default=1,
        help="processes to serve from, each with models of its own; one that dies is started anew (default: 1)",
    )
    options = parser.parse_args(arguments)
    if options.share and options.workers > 1:
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


def limits(options: argparse.Namespace) -> WritingLimits:
    """What visitors may have at most: what is said, or else what a public server lets them have, or all there is."""
    most = PUBLIC_LIMITS if is_public(options) else NO_LIMITS
    tokens = min(options.most_new_tokens or most.tokens, NO_LIMITS.tokens)
    return replace(most, tokens=tokens, seconds=options.most_seconds or most.seconds)


def at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def serve_from_workers(options: argparse.Namespace):
    host = options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    port = options.port or int(os.environ.get("GRADIO_SERVER_PORT") or 7860)
    command = [sys.executable, *sys.argv]
    if not hub_names(options):  # which each of them would decide by the address that it listens on itself
        command.append("--no-open")
    if options.host and "*" not in options.allowed_hosts:
        command += ["--allowed-hosts", *options.allowed_hosts, options.host]
    serve(command, options.workers, host, port, os.environ.get("GRADIO_ROOT_PATH", ""))


def main():
    options = parse_arguments()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("explorer").setLevel(options.log_level.upper())
    if options.workers > 1:
        serve_from_workers(options)
        return
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what was to be tidied up is
    try:
        library = Library(options.device, hub_names=hub_names(options))
        if options.module:
            checkpoint = opened(options, library)
        else:
            checkpoint = (
                options.checkpoint if is_checkpoint(options.checkpoint) else library.offered.open(options.checkpoint)
            )
        lm, _tokenizer = library.model(checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    set_threads(lm.config)
    try:
        page = Page(library, checkpoint, limits(options), options.lessons)
    except (LessonError, OSError) as error:
        sys.exit(f"error: {error}")
    served = {"server_name": options.host, "server_port": options.port, "share": options.share}
    blocks = page.launch(options.allowed_hosts, prevent_thread_lock=True, **served)
    page.warm_up()
    blocks.block_thread()


if __name__ == "__main__":
    main()
