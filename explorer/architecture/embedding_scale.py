"""The factor by which a model scales its token embeddings."""

from model.config import ModelConfig


def embedding_scale_formula(config: ModelConfig) -> str:
    """Return the factor in a formula: "√D", a number, both, or "" for none."""
    return _format_factor(config, "√D")


def embedding_scale_in_numbers(config: ModelConfig) -> str:
    """Return the factor with the value of D, for example "√64"."""
    return _format_factor(config, f"√{config.d_model}")


def _format_factor(config: ModelConfig, root: str) -> str:
    multiplier = [f"{config.embedding_multiplier:g}"] * (config.embedding_multiplier != 1)
    return " · ".join([*multiplier, *[root] * config.scale_embeddings])
