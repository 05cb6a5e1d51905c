"""Export of a model to another format: `python -m model.export NAME --to hf` or `--to gguf`."""

import argparse
import sys
from pathlib import Path

import torch

from model.checkpoint import load_checkpoint
from model.errors import ModelError
from model.gguf.export_gguf import save_gguf
from model.pretrained.export_hugging_face import save_hugging_face

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def main(arguments: list[str] | None = None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m model.export", description="Export a model to another format.")
    parser.add_argument("name", metavar="NAME_OR_PATH", help="checkpoint name or path, as for load_checkpoint")
    parser.add_argument(
        "--to",
        choices=("hf", "gguf"),
        required=True,
        help="target format; hf: a folder for Hugging Face transformers; gguf: a file for llama.cpp",
    )
    parser.add_argument("--out", type=Path, help="output folder or file (default: NAME-hf or NAME.gguf)")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="data type of the weights (default: float32)"
    )
    options = parser.parse_args(arguments)
    is_folder = options.to == "hf"
    target = options.out or Path(f"{Path(options.name).stem}{'-hf' if is_folder else '.gguf'}")
    if is_folder and target.exists() and any(target.iterdir()):
        sys.exit(f"error: {target} is not empty: name another folder with --out")
    if not is_folder and target.exists():
        sys.exit(f"error: {target} exists: name another file with --out")
    save = save_hugging_face if is_folder else save_gguf
    try:
        print(save(*load_checkpoint(options.name), target, DTYPES[options.dtype]))
    except (ModelError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
