"""By what a model multiplies the rows of its embedding table."""

from model.config import ModelConfig


def factor(config: ModelConfig) -> str:
    """As a formula has it: "√D", a number, both, or "" where they are read as they are."""
    return times(config, "√D")


def factor_in_numbers(config: ModelConfig) -> str:
    """The same with D in it, as in "√64"."""
    return times(config, f"√{config.d_model}")


def times(config: ModelConfig, root: str) -> str:
    multiplier = [f"{config.embedding_multiplier:g}"] * (config.embedding_multiplier != 1)
    return " · ".join([*multiplier, *[root] * config.scale_embeddings])
