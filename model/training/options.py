"""The hyper-parameters of a training run."""

import argparse
import json
import sys
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from model.config import ModelConfig, option
from model.layers.positions import RopeScaling
from model.transformer_lm import INITIALISATIONS

STYLES = {"llama": ModelConfig.llama_style, "gpt": ModelConfig.gpt_style}
CHOICES = {
    "style": tuple(STYLES),
    "initialisation": tuple(INITIALISATIONS),
    "optimizer": ("adamw", "muon"),
    "precision": ("float32", "bf16"),
}
COUNTS = ("steps", "batch_size", "accumulation", "evaluate_every")

# What the flags set of the model; all else is as the style has it.
MODEL_DEFAULTS = {
    "context_length": 256,
    "d_model": 192,
    "num_layers": 6,
    "num_heads": 6,
    "dropout": 0.1,
    "tie_embeddings": True,
}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of `python -m model.training`, one flag per field; `--help` prints their meanings and usual ranges.

    `model` holds the fields of `ModelConfig` that differ from the style's, each a flag of its own.

    Raises:
        ValueError: a choice is unknown or a count is not positive; the model and the optimizers check the rest.
    """

    train: Path = option("training text: a UTF-8 file, or a folder of such; <|endoftext|> separates documents")
    out: str = option("checkpoint to write: a name in checkpoints/ or a path")
    validation: Path | None = option("validation text; without it, 5% of the training text is held out", default=None)
    tokenizer: Path | None = option("tokenizer.tiktoken to use; without it one is trained on the text", default=None)
    vocab_size: int = option("vocabulary size of the tokenizer to train; 1,000 to 100,000", default=4096)
    style: str = option("llama (RMSNorm, RoPE, SwiGLU) or gpt (LayerNorm, sinusoidal, ReLU, biases)", default="llama")
    model: dict[str, Any] = field(default_factory=dict)
    initialisation: str = option("truncated_normal, xavier, kaiming or gpt2", default="truncated_normal")
    optimizer: str = option("adamw or muon", default="muon")
    learning_rate: float = option("peak learning rate; 3e-4 to 1e-2, larger for smaller models", default=3e-3)
    weight_decay: float = option("weight decay of the matrices; 0.01 to 0.3", default=0.1)
    beta1: float = option("AdamW's decay rate per step of the mean gradient; 0.9", default=0.9)
    beta2: float = option("AdamW's decay rate per step of the mean squared gradient; 0.95 to 0.999", default=0.95)
    clip: float = option("gradient clipping: maximum norm of the whole gradient; 0.5 to 2", default=1.0)
    label_smoothing: float = option("label smoothing: probability spread over all tokens; 0 to 0.1", default=0.0)
    steps: int = option("number of training steps, one batch each", default=12000)
    batch_size: int = option("windows (sequences) per batch, over all processes; 8 to 256", default=16)
    accumulation: int = option("gradient accumulation steps per batch, to save memory; 1 to 16", default=1)
    warmup_steps: int = option("warm-up steps, over which the learning rate rises; 1% to 5% of all", default=200)
    final_learning_rate: float = option("final learning rate as a fraction of the peak; 0 to 0.1", default=0.02)
    copy_fraction: float = option(
        "fraction of training windows that are repeated random tokens; 0 to 0.15", default=0.05
    )
    copy_from: float = option("fraction of training after which these windows start; 0 to 1", default=0.6)
    evaluate_every: int = option("steps between evaluations; each also saves the checkpoint", default=500)
    patience: int | None = option("stop after this many evaluations without a better loss; 3 to 10", default=None)
    snapshots: int = option("number of intermediate checkpoints, the first before step 1; 0, or 12 to 16", default=0)
    precision: str = option("float32, or bf16 for mixed precision", default="bf16")
    compile: bool = option("compile the model first (needs a C++ compiler; faster after a minute)", default=False)
    device: str = option("cpu, cuda or mps", default="cpu")
    seed: int = option("random seed of initialisation, data order and dropout", default=0)
    resume: bool = option("continue an earlier run with the same options", default=False)

    def __post_init__(self):
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.snapshots not in range(self.steps + 2) or self.snapshots == 1:
            raise ValueError(f"snapshots must be 0 or from 2 to steps + 1, got {self.snapshots}")

    def model_config(self, vocab_size: int) -> ModelConfig:
        """Return the style's config, with the fields in `model` overridden."""
        return STYLES[self.style](**MODEL_DEFAULTS | self.model, vocab_size=vocab_size)


OPTIONS = {f.name: f for f in fields(TrainingOptions) if f.name != "model"}
MODEL_OPTIONS = {f.name: f for f in fields(ModelConfig) if f.name != "vocab_size"}


def parse_options(arguments: list[str] | None = None) -> TrainingOptions:
    """Parse the flags and the `--config` file; flags override the file.

    Exits with a message where one is missing or not of its type.

    Raises:
        ValueError: the file is no JSON object, or a value is out of its range.
    """
    parser = argparse.ArgumentParser(prog="python -m model.training", description="Train a TransformerLM on text.")
    parser.add_argument(
        "--config", type=Path, help="JSON file of options, named as below but with _ for -; flags take precedence"
    )
    group = parser.add_argument_group("training")
    for option_field in OPTIONS.values():
        add_flag(group, option_field, None if option_field.default is MISSING else option_field.default)
    group = parser.add_argument_group("model", "Options without a default depend on --style.")
    for name, option_field in MODEL_OPTIONS.items():
        add_flag(group, option_field, MODEL_DEFAULTS.get(name))
    arguments = sys.argv[1:] if arguments is None else arguments
    config = parser.parse_args(arguments).config
    values = vars(parser.parse_args([*(read_flags(config) if config else []), *arguments]))
    for name in ("train", "out"):
        if name not in values:
            parser.error(f"the following arguments are required: --{name}")
    values.pop("config")
    model = {name: values.pop(name) for name in list(values) if name in MODEL_OPTIONS}
    return TrainingOptions(**values, model=model)


def add_flag(group, option_field: Field, default) -> None:
    """Add a flag of the field's name and type; unless it is used, the result lacks it."""
    text = option_field.metadata["help"]
    if default not in (None, False):
        text += f" (default {default})"
    kind = (
        tuple
        if get_origin(option_field.type) is tuple
        else next(filter(None, get_args(option_field.type)), option_field.type)
    )
    if kind is bool:
        kwargs = {"action": argparse.BooleanOptionalAction}
    else:
        kwargs = {"type": PARSERS.get(kind, kind), "metavar": kind.__name__.upper()}
    help = text.replace("%", "%%")  # argparse formats it with %
    group.add_argument("--" + option_field.name.replace("_", "-"), default=argparse.SUPPRESS, help=help, **kwargs)


def parse_rope_scaling(text: str) -> RopeScaling:
    """Parse a `RopeScaling` from a JSON object of its fields."""
    try:
        return RopeScaling(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def parse_layer_list(text: str) -> tuple:
    """Parse a JSON list with one entry per layer."""
    try:
        return tuple(json.loads(text))
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


PARSERS = {RopeScaling: parse_rope_scaling, tuple: parse_layer_list}


def read_flags(path: Path) -> list[str]:
    """Read a JSON file of options as command-line flags.

    Raises:
        ValueError: it cannot be read or is no JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"the config must be a readable JSON file: {path}: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"the config must be a JSON object of options, got {type(values).__name__}: {path}")
    flags = []
    for name, value in values.items():
        name = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{name}" if value else f"--no-{name}")
        elif value is not None:
            flags.append(f"--{name}={value if isinstance(value, str) else json.dumps(value)}")
    return flags
