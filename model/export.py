"""Export of a model to another format: `python -m model.export NAME --to hf`."""

import argparse
import sys
from pathlib import Path

import torch

from model.checkpoint import load_checkpoint
from model.errors import ModelError
from model.pretrained.export_hugging_face import save_hugging_face

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def main(arguments: list[str] | None = None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m model.export", description="Export a model to another format.")
    parser.add_argument("name", metavar="NAME_OR_PATH", help="checkpoint name or path, as for load_checkpoint")
    parser.add_argument(
        "--to", choices=("hf",), required=True, help="target format; hf: a folder for Hugging Face transformers"
    )
    parser.add_argument("--out", type=Path, help="output folder (default: NAME-hf)")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="data type of the weights (default: float32)"
    )
    options = parser.parse_args(arguments)
    folder = options.out or Path(f"{Path(options.name).stem}-hf")
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"error: {folder} is not empty: name another folder with --out")
    try:
        print(save_hugging_face(*load_checkpoint(options.name), folder, DTYPES[options.dtype]))
    except (ModelError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
