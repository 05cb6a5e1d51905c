"""Starts the TransformerLM Explorer: `python app.py`, then open the address it prints."""

import argparse
import logging
import os
import signal
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from explorer.state.settings import WritingLimits
from explorer.tracing.library import Library
from explorer.web.page import Page
from model import CheckpointError


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="See a transformer language model at work, in the browser.")
    parser.add_argument("--host", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 7860, or the next free one)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="where models run")
    parser.add_argument("--checkpoint", metavar="NAME", default="llama-fables", help="model shown first")
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
    parser.add_argument("--share", action="store_true", help="also open a public address, through Gradio's servers")
    return parser.parse_args(arguments)


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
        library = Library(options.device)
        library.model(options.checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    limits = WritingLimits(min(options.most_new_tokens, WritingLimits().tokens), options.most_seconds)
    Page(library, options.checkpoint, limits).launch(
        options.allowed_hosts, server_name=options.host, server_port=options.port, share=options.share
    )


if __name__ == "__main__":
    main()
