"""Starts the TransformerLM Explorer: `python app.py`, then open the address it prints."""

import argparse
import os
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from explorer.library import Library
from explorer.page import Page
from explorer.settings import WritingLimits
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
    parser.add_argument("--share", action="store_true", help="also open a public address, through Gradio's servers")
    return parser.parse_args(arguments)


def at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def main():
    options = parse_arguments()
    try:
        library = Library(options.device)
        library.model(options.checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    limits = WritingLimits(min(options.most_new_tokens, WritingLimits().tokens), options.most_seconds)
    Page(library, options.checkpoint, limits).launch(
        server_name=options.host, server_port=options.port, share=options.share
    )


if __name__ == "__main__":
    main()
