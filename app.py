"""Starts the TransformerLM Explorer: `python app.py`, then open the address it prints."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from explorer.lessons.course.blocks import LessonError
from explorer.own_module.command import add_arguments
from explorer.own_module.serving import opened
from explorer.state.settings import WritingLimits
from explorer.tracing.library import Library
from explorer.tracing.offered_models import ANY_NAME
from explorer.web.page import Page
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
    most = WritingLimits().tokens
    parser.add_argument(
        "--most-new-tokens",
        type=at_least_one,
        metavar="N",
        default=most,
        help=f"that Generate writes (default: {most})",
    )
    parser.add_argument(
        "--most-seconds",
        type=at_least_one,
        metavar="S",
        default=float("inf"),
        help="of one Generate (default: no limit)",
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
    parser.add_argument("--share", action="store_true", help="also open a public address, through Gradio's servers")
    return parser.parse_args(arguments)


def hub_names(options: argparse.Namespace) -> Collection[str]:
    """Which models of the hub visitors may have opened: any only where nobody else reaches the page."""
    if options.no_open:
        return ()
    if options.models is not None:
        return options.models
    host = options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    is_public = options.share or "SPACE_ID" in os.environ or host not in ("127.0.0.1", "localhost", "::1")
    return () if is_public else ANY_NAME


def at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def main():
    options = parse_arguments()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("explorer").setLevel(options.log_level.upper())
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what was to be tidied up is
    try:
        library = Library(options.device, hub_names=hub_names(options))
        if options.module:
            checkpoint = opened(options, library)
        else:
            checkpoint = (
                options.checkpoint if is_checkpoint(options.checkpoint) else library.offered.open(options.checkpoint)
            )
        library.model(checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    limits = WritingLimits(min(options.most_new_tokens, WritingLimits().tokens), options.most_seconds)
    try:
        page = Page(library, checkpoint, limits, options.lessons)
    except (LessonError, OSError) as error:
        sys.exit(f"error: {error}")
    page.launch(options.allowed_hosts, server_name=options.host, server_port=options.port, share=options.share)


if __name__ == "__main__":
    main()
