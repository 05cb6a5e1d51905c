"""The hyper-parameters of a training run."""

import argparse
import json
import sys
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from model.config import ModelConfig
from model.initialisation import INITIALISATIONS
from model.layers.rope_scaling import RopeScaling

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
MODEL_HELP = {
    "context_length": "positions the model sees at once; 64 to 1,024 for small models",
    "d_model": "width of the residual stream; 64 to 768",
    "num_layers": "blocks; 2 to 12",
    "num_heads": "attention heads a block; d_model / 64 to d_model / 16",
    "d_ff": "neurons of the feed-forward; 8/3 d_model for swiglu, 4 d_model for others",
    "head_dim": "width of a head; d_model / num_heads unless given",
    "num_kv_heads": "heads of keys and values, shared among the others; num_heads / 8 to num_heads",
    "norm": "rmsnorm or layernorm",
    "norm_placement": "pre or post: normalise before or after a sublayer, post needs a small learning rate; parallel: "
    "before both sublayers, which read the same; shared: one before both; output: what a sublayer adds; sandwich: "
    "what it reads and what it adds",
    "norm_eps": "what keeps a norm from dividing by 0; 1e-6 to 1e-5",
    "qk_norm": "normalise queries and keys, which steadies large learning rates",
    "qk_norm_over": "head by head, or all heads of a token together: head or all",
    "position": "rope, sinusoidal, learned or none",
    "rope_theta": "base of the rotary angles; 10,000, up to 1,000,000 for long contexts",
    "local_rope_theta": "that of layers with windows; 10,000 where the others have 1,000,000",
    "rope_scaling": 'slower rotation for longer contexts, {"kind": "linear", "ntk", "llama3" or "yarn", "factor": 4}',
    "score_divisor": "what the products of queries and keys are divided by; √(width of a head) unless given",
    "score_cap": "keep scores within ± this by tanh; 50",
    "logit_cap": "the same for logits; 15 to 30",
    "windows": "how many tokens a query sees, layer by layer, as a JSON list; [null, 256] for every other layer",
    "rotary_dim": "dimensions of each head that turn; all unless given",
    "rotary_layers": "whether queries and keys turn, layer by layer, as a JSON list; [true, true, true, false]",
    "rope_layout": "adjacent or half_split pairs of dimensions",
    "ffn": "swiglu, geglu, relu, relu2, gelu or gelu_tanh",
    "bias": "biases in the blocks' linear maps",
    "qkv_bias": "biases of queries, keys and values, even if the others have none",
    "unbiased_qkv": "no biases of queries, keys and values, even if the others have them",
    "unembedding_bias": "a number a token that is added to its logit",
    "dropout": "probability of dropping an element; 0 to 0.2, more when epochs repeat",
    "attention_dropout": "the same for the attention pattern; 0 to 0.2, slow",
    "tie_embeddings": "use the embedding table as unembedding; pays in small models",
    "scale_embeddings": "multiply embeddings by √d_model, as tied ones added to sinusoidal positions want",
    "embedding_multiplier": "multiply embeddings by a number, besides; 1 to 12",
}


def option(help: str, **kwargs):
    return field(metadata={"help": help}, **kwargs)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """One field a flag of `python -m model.training`; `--help` prints what each does and its usual range.

    `model` holds the fields of `ModelConfig` that differ from the style's, each a flag of its own.

    Raises:
        ValueError: a choice is unknown or a count is not positive; the model and the optimizers check the rest.
    """

    train: Path = option("training text: a UTF-8 file, or a folder of such; <|endoftext|> separates documents")
    out: str = option("checkpoint to write: a name in checkpoints/ or a path")
    validation: Path | None = option("held-out text; without it a twentieth of the training text", default=None)
    tokenizer: Path | None = option("tokenizer.tiktoken to use; without it one is trained on the text", default=None)
    vocab_size: int = option("tokens of the tokenizer to train; 1,000 to 100,000", default=4096)
    style: str = option("llama (RMSNorm, RoPE, SwiGLU) or gpt (LayerNorm, sinusoidal, ReLU, biases)", default="llama")
    model: dict[str, Any] = field(default_factory=dict)
    initialisation: str = option("truncated_normal, xavier, kaiming or gpt2", default="truncated_normal")
    optimizer: str = option("adamw or muon", default="muon")
    learning_rate: float = option("peak; 3e-4 to 1e-2, larger for smaller models", default=3e-3)
    weight_decay: float = option("pull of the matrices towards 0; 0.01 to 0.3", default=0.1)
    beta1: float = option("AdamW's memory of the gradient, as a decay a step; 0.9", default=0.9)
    beta2: float = option("AdamW's memory of its square; 0.95 to 0.999", default=0.95)
    clip: float = option("largest norm of the whole gradient; 0.5 to 2", default=1.0)
    label_smoothing: float = option("share of the target spread over all tokens; 0 to 0.1", default=0.0)
    steps: int = option("batches to train on", default=12000)
    batch_size: int = option("windows a batch, of all processes together; 8 to 256", default=16)
    accumulation: int = option("parts a process takes its share of a batch in, to save memory; 1 to 16", default=1)
    warmup_steps: int = option("steps over which the learning rate rises; 1% to 5% of all", default=200)
    final_learning_rate: float = option("last learning rate as a share of the peak; 0 to 0.1", default=0.02)
    copy_fraction: float = option("share of windows that are random tokens repeated; 0 to 0.15", default=0.05)
    copy_from: float = option("part of the run after which such windows come; 0 to 1", default=0.6)
    evaluate_every: int = option("steps between evaluations; each also saves the checkpoint", default=500)
    patience: int | None = option("evaluations without a better loss that end the run; 3 to 10", default=None)
    snapshots: int = option("checkpoints kept on the way, the first before step 1; 0, or 12 to 16", default=0)
    precision: str = option("float32, or bf16 for mixed precision", default="bf16")
    compile: bool = option("compile the model first (needs a C++ compiler; faster after a minute)", default=False)
    device: str = option("cpu, cuda or mps", default="cpu")
    seed: int = option("fixes initialisation, order and dropout", default=0)
    resume: bool = option("go on where an earlier run with the same options stopped", default=False)

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
        """The style's config with the given fields in the place of its own."""
        return STYLES[self.style](**MODEL_DEFAULTS | self.model, vocab_size=vocab_size)


OPTIONS = {f.name: f for f in fields(TrainingOptions) if f.name != "model"}
MODEL_OPTIONS = {f.name: f for f in fields(ModelConfig) if f.name in MODEL_HELP}


def parse_options(arguments: list[str] | None = None) -> TrainingOptions:
    """The options of the `--config` file and, before those, of the flags.

    Exits with a message where one is missing or not of its type.

    Raises:
        ValueError: the file is no JSON object, or a value is out of its range.
    """
    parser = argparse.ArgumentParser(prog="python -m model.training", description="Train a TransformerLM on text.")
    parser.add_argument("--config", type=Path, help="JSON file of options by the names below, with _ for -")
    group = parser.add_argument_group("training")
    for f in OPTIONS.values():
        add_flag(group, f, f.metadata["help"], None if f.default is MISSING else f.default)
    group = parser.add_argument_group("model", "Without a default: as the style has it.")
    for name, f in MODEL_OPTIONS.items():
        add_flag(group, f, MODEL_HELP[name], MODEL_DEFAULTS.get(name))
    arguments = sys.argv[1:] if arguments is None else arguments
    config = parser.parse_args(arguments).config
    values = vars(parser.parse_args([*(as_flags(config) if config else []), *arguments]))
    for name in ("train", "out"):
        if name not in values:
            parser.error(f"the following arguments are required: --{name}")
    values.pop("config")
    model = {name: values.pop(name) for name in list(values) if name in MODEL_OPTIONS}
    return TrainingOptions(**values, model=model)


def add_flag(group, f: Field, text: str, default) -> None:
    """A flag of the field's name and type, absent from the result unless given."""
    if default not in (None, False):
        text += f" (default {default})"
    kind = tuple if get_origin(f.type) is tuple else next(filter(None, get_args(f.type)), f.type)
    if kind is bool:
        how = {"action": argparse.BooleanOptionalAction}
    else:
        how = {"type": PARSERS.get(kind, kind), "metavar": kind.__name__.upper()}
    help = text.replace("%", "%%")  # argparse formats it with %
    group.add_argument("--" + f.name.replace("_", "-"), default=argparse.SUPPRESS, help=help, **how)


def rope_scaling(text: str) -> RopeScaling:
    """From a JSON object of its fields."""
    try:
        return RopeScaling(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def layer_by_layer(text: str) -> tuple:
    """From a JSON list."""
    try:
        return tuple(json.loads(text))
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


PARSERS = {RopeScaling: rope_scaling, tuple: layer_by_layer}


def as_flags(path: Path) -> list[str]:
    """The command line that says what a JSON file does.

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
