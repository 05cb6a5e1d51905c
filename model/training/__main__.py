"""`python -m model.training`: train a model on text."""

import sys

from model.training.options import parse_options
from model.training.trainer import train

if __name__ == "__main__":
    try:
        train(parse_options())
    except (OSError, ValueError, FloatingPointError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; run the same command with --resume to continue from the last evaluation")
