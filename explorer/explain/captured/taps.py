"""Which formula each captured value follows, in every kind of model."""

import re
from collections.abc import Callable

from explorer.architecture.stream import block_output
from explorer.explain.captured.embedding import Angles, Embedded, Learned, Waves
from explorer.explain.captured.formula import Formula
from explorer.explain.captured.linear import Copy, Linear, Sum
from explorer.explain.captured.norms import NORM_LINES, Norm
from explorer.explain.captured.sublayers import ATTENTION_TAPS, FEED_FORWARD_TAPS
from explorer.explain.source import Source
from model.config import ModelConfig

LM, BLOCK, TABLE = "model/transformer_lm.py", "model/layers/transformer_block.py", "model/layers/embedding.py"


def formula_of(config: ModelConfig, name: str) -> Formula:
    """The formula of a captured value of a kind of model; KeyError where none is known."""
    in_block = re.fullmatch(r"blocks\.(\d+)\.(.+)", name)
    known = IN_BLOCKS if in_block else OUTSIDE
    tap = in_block[2] if in_block else name
    if tap not in known:
        raise KeyError(f"no formula is known for {name!r}; it belongs in explorer/explain/captured/taps.py")
    return known[tap](config, int(in_block[1])) if in_block else known[tap](config)


def embedded(config: ModelConfig) -> Formula:
    positions = config.position in ("sinusoidal", "learned")
    line = Source(TABLE, "return self.weight[token_ids]")
    if config.scale_embeddings:
        line = Source(LM, "x = x * self.embedding_scale")
    if positions:
        line = Source(LM, "x = (x + self.position_embed(")
    return Embedded(positions, line)


def position_embedded(config: ModelConfig) -> Formula:
    if config.position == "learned":
        return Learned(Source(TABLE, "return self.weight[token_ids]"))
    return Waves(Source("model/layers/sinusoidal.py", "return torch.stack((angles.sin(), angles.cos())"))


def final_norm(config: ModelConfig) -> Formula:
    stream = block_output(config, config.num_layers - 1)
    if config.norm_placement == "post":
        return Copy("final_norm", stream, Source(LM, "self.final_norm(x)"))
    return Norm("final_norm", Copy("x", stream, LOGITS), "final_norm", NORM_LINES[config.norm])


LOGITS = Source(LM, "return self.logits(self.lm_head(self.final_norm(x)))")


def resid_pre(config: ModelConfig, layer: int) -> Formula:
    if layer == 0:
        return Copy("resid_pre", "embed", Source(LM, "x = self.dropout(self.embed_tokens("))
    return Copy("resid_pre", block_output(config, layer - 1), Source(LM, "x = block(x, rotation"))


def resid_mid(config: ModelConfig, layer: int) -> Formula:
    read = "self.attn_norm(x)" if config.norm_placement == "pre" else "x"
    block = f"blocks.{layer}"
    line = Source(BLOCK, f"self.resid_mid(x + self.attn({read}, ")
    return Sum("resid_mid", f"{block}.resid_pre", f"{block}.attn.out", line)


def resid_post(config: ModelConfig, layer: int) -> Formula:
    pre, block = config.norm_placement == "pre", f"blocks.{layer}"
    before = f"{block}.{'resid_mid' if pre else 'attn_norm'}"
    line = Source(BLOCK, f"self.resid_post(x + self.ffn({'self.ffn_norm(x)' if pre else 'x'})")
    return Sum("resid_post", before, f"{block}.ffn.out", line)


def stream_norm(sublayer: str) -> Callable[[ModelConfig, int], Formula]:
    """The norm of a sublayer: of what it reads, or in a post-norm block of the sum after it."""
    pre, post = {"attn": ("resid_pre", "resid_mid"), "ffn": ("resid_mid", "resid_post")}[sublayer]

    def formula(config: ModelConfig, layer: int) -> Formula:
        norm, line = f"blocks.{layer}.{sublayer}_norm", NORM_LINES[config.norm]
        x = Copy("x", f"blocks.{layer}.{pre if config.norm_placement == 'pre' else post}", line)
        return Norm(f"{sublayer}_norm", x, norm, line)

    return formula


OUTSIDE: dict[str, Callable[[ModelConfig], Formula]] = {
    "embed": embedded,
    "position_embed": position_embedded,
    "rope.angles": lambda config: Angles(Source("model/layers/rope.py", "return torch.outer(positions, frequencies)")),
    "final_norm": final_norm,
    "logits": lambda config: Linear("logit", "final_norm", "lm_head", LOGITS),
}
IN_BLOCKS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "resid_pre": resid_pre,
    "attn_norm": stream_norm("attn"),
    "resid_mid": resid_mid,
    "ffn_norm": stream_norm("ffn"),
    "resid_post": resid_post,
    **ATTENTION_TAPS,
    **FEED_FORWARD_TAPS,
}
