"""The hyper-parameters of a training run."""

import argparse
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

CHOICES = {"optimizer": ("adamw", "muon"), "precision": ("float32", "bf16")}


def option(help: str, **kwargs):
    return field(metadata={"help": help}, **kwargs)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """One field a flag of `python -m model.training`; `--help` prints what each does and its usual range.

    Raises:
        ValueError: a choice is unknown or a count is not positive; the model and the optimizers check the rest.
    """

    train: Path = option("training text, UTF-8, documents separated by lines holding <|endoftext|>")
    validation: Path = option("held-out text in the same form")
    out: str = option("checkpoint to write: a name in checkpoints/ or a path")
    tokenizer: Path | None = option("tokenizer.tiktoken to use; without it one is trained on the text", default=None)
    vocab_size: int = option("tokens of the tokenizer to train; 1,000 to 100,000", default=4096)
    context_length: int = option("positions the model sees at once; 64 to 1,024 for small models", default=256)
    d_model: int = option("width of the residual stream; 64 to 768", default=192)
    num_layers: int = option("blocks; 2 to 12", default=6)
    num_heads: int = option("attention heads a block; d_model / 64 to d_model / 16", default=6)
    d_ff: int = option("neurons of the feed-forward; about 8/3 d_model", default=512)
    dropout: float = option("probability of dropping an element; 0 to 0.2, more when epochs repeat", default=0.1)
    optimizer: str = option("adamw or muon", default="muon")
    learning_rate: float = option("peak; 3e-4 to 5e-3, larger for smaller models", default=3e-3)
    weight_decay: float = option("pull of the matrices towards 0; 0.01 to 0.3", default=0.1)
    beta1: float = option("AdamW's memory of the gradient, as a decay a step; 0.9", default=0.9)
    beta2: float = option("AdamW's memory of its square; 0.95 to 0.999", default=0.95)
    clip: float = option("largest norm of the whole gradient; 0.5 to 2", default=1.0)
    steps: int = option("batches to train on", default=12000)
    batch_size: int = option("windows a batch; 8 to 256", default=16)
    warmup_steps: int = option("steps over which the learning rate rises; 1% to 5% of all", default=200)
    final_learning_rate: float = option("last learning rate as a share of the peak; 0 to 0.1", default=0.02)
    copy_fraction: float = option("share of windows that are random tokens repeated; 0 to 0.15", default=0.05)
    copy_from: float = option("part of the run after which such windows come; 0 to 1", default=0.6)
    evaluate_every: int = option("steps between evaluations; each also saves the checkpoint", default=500)
    precision: str = option("float32, or bf16 for mixed precision", default="bf16")
    compile: bool = option("compile the model first (needs a C++ compiler; faster after a minute)", default=False)
    device: str = option("cpu, cuda or mps", default="cpu")
    seed: int = option("fixes initialisation, order and dropout", default=0)

    def __post_init__(self):
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        for name in ("steps", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def parse_options(arguments: list[str] | None = None) -> TrainingOptions:
    """The options given on the command line; exits with a message where one is missing or not of its type."""
    parser = argparse.ArgumentParser(prog="python -m model.training", description="Train a TransformerLM on text.")
    for f in fields(TrainingOptions):
        flag = "--" + f.name.replace("_", "-")
        text = f.metadata["help"].replace("%", "%%")  # argparse formats it with %
        if f.type is bool:
            parser.add_argument(flag, action="store_true", help=text)
            continue
        kind = Path if f.type in (Path, Path | None) else f.type
        required = f.default is MISSING
        if not required and f.default is not None:
            text += f" (default {f.default})"
        parser.add_argument(flag, type=kind, required=required, default=None if required else f.default, help=text)
    return TrainingOptions(**vars(parser.parse_args(arguments)))
