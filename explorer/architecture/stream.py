"""The residual stream's way through a model."""

from model.config import ModelConfig


def stream_taps(config: ModelConfig) -> list[str]:
    """Names of the values that the stream goes through, in order, from the embedding to what the unembedding reads.

    Of a norm among them, which is one in whose name the model has a weight, the one before is what it normalises.
    """
    post = config.norm_placement == "post"
    each = ("resid_pre", "resid_mid", *["attn_norm"] * post, "resid_post", *["ffn_norm"] * post)
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in each]
    return ["embed", *blocks, "final_norm"]


def block_output(config: ModelConfig, layer: int) -> str:
    """What a block hands on; -1 stands for the embedding."""
    if layer < 0:
        return "embed"
    return f"blocks.{layer}.{'resid_post' if config.norm_placement == 'pre' else 'ffn_norm'}"


def input_of(config: ModelConfig, norm: str) -> str:
    """The value that a norm of the stream reads."""
    if norm == "final_norm":
        return block_output(config, config.num_layers - 1)
    block, _dot, name = norm.rpartition(".")
    before = {"attn_norm": ("resid_pre", "resid_mid"), "ffn_norm": ("resid_mid", "resid_post")}[name]
    return f"{block}.{before[config.norm_placement == 'post']}"


def taps_from(config: ModelConfig, name: str) -> list[str]:
    """Those from one of them on."""
    taps = stream_taps(config)
    return taps[taps.index(name) :]


def norms_from(config: ModelConfig, name: str) -> list[tuple[str, str]]:
    """The norms that the stream goes through from one of its values on, each with the value that it normalises."""
    taps = taps_from(config, name)
    norms = ("attn_norm", "ffn_norm") if config.norm_placement == "post" else ("final_norm",)
    return [(norm, before) for before, norm in zip(taps, taps[1:], strict=False) if norm.endswith(norms)]
