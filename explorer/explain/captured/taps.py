"""Which formula each captured value follows, in every kind of model."""

import re
from collections.abc import Callable
from functools import partial

from explorer.architecture.stream import added_at, before_value, block_output, has_final_norm, input_of
from explorer.explain.captured.capped import Capped
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
    if config.embedding_scale != 1:
        line = Source(LM, "x = x * self.config.embedding_scale")
    if positions:
        line = Source(LM, "x = (x + self.position_embed(")
    return Embedded(positions, line)


def position_embedded(config: ModelConfig) -> Formula:
    if config.position == "learned":
        return Learned(Source(TABLE, "return self.weight[token_ids]"))
    return Waves(Source("model/layers/sinusoidal.py", "return torch.stack((angles.sin(), angles.cos())"))


def final_norm(config: ModelConfig) -> Formula:
    stream = block_output(config, config.num_layers - 1)
    if not has_final_norm(config):
        return Copy("final_norm", stream, Source(LM, "self.final_norm(x)"))
    return Norm("final_norm", Copy("x", stream, LOGITS), "final_norm", NORM_LINES[config.norm])


LOGITS = Source(LM, "logits = softcap(self.lm_head(x)")


def logits(config: ModelConfig) -> Formula:
    plain = Linear("logit", "final_norm", "lm_head", LOGITS)
    return plain if config.logit_cap is None else Capped("logit", plain, config.logit_cap, LOGITS)


def resid_pre(config: ModelConfig, layer: int) -> Formula:
    if layer == 0:
        return Copy("resid_pre", "embed", Source(LM, "x = self.dropout(self.embed_tokens("))
    return Copy("resid_pre", block_output(config, layer - 1), Source(LM, "x = block(x, turns"))


def stream_sum(name: str) -> Callable[[ModelConfig, int], Formula]:
    """A value of the stream that is the one before and what sublayers write."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        value = f"blocks.{layer}.{name}"
        terms = before_value(config, value), *added_at(config, value)
        return Sum(name, terms, Source(BLOCK, SUMS[config.norm_placement, name]))

    return formula


# where the norms stand, and a value of the stream -> the line that adds it up
SUMS = {
    ("pre", "resid_mid"): "self.resid_mid(x + self.attn(self.attn_norm(x), ",
    ("pre", "resid_post"): "self.resid_post(x + self.ffn(self.ffn_norm(x))",
    ("post", "resid_mid"): "self.resid_mid(x + self.attn(x, ",
    ("post", "resid_post"): "self.resid_post(x + self.ffn(x)",
    ("parallel", "resid_post"): "self.resid_post(x + fetched + self.ffn(self.ffn_norm(x))",
    ("shared", "resid_post"): "self.resid_post(x + fetched + self.ffn(y)",
    ("sandwich", "resid_mid"): "self.resid_mid(x + self.attn_out_norm(fetched)",
    ("sandwich", "resid_post"): "self.resid_post(x + self.ffn_out_norm(self.ffn(self.ffn_norm(x)))",
    ("output", "resid_mid"): "self.resid_mid(x + self.attn_norm(self.attn(x, ",
    ("output", "resid_post"): "self.resid_post(x + self.ffn_norm(self.ffn(x))",
}


def block_norm(config: ModelConfig, layer: int, name: str) -> Formula:
    """One of a block's norms: of what a sublayer reads or writes, or of the stream."""
    norm, line = f"blocks.{layer}.{name}", NORM_LINES[config.norm]
    return Norm(name, Copy("x", input_of(config, norm), line), norm, line)


ROPE = Source("model/layers/rope.py", "return torch.outer(positions, frequencies)")
OUTSIDE: dict[str, Callable[[ModelConfig], Formula]] = {
    "embed": embedded,
    "position_embed": position_embedded,
    "rope.angles": lambda config: Angles(ROPE),
    "local_rope.angles": lambda config: Angles(ROPE, local=True),
    "final_norm": final_norm,
    "logits": logits,
}
IN_BLOCKS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "resid_pre": resid_pre,
    "resid_mid": stream_sum("resid_mid"),
    "resid_post": stream_sum("resid_post"),
    **{name: partial(block_norm, name=name) for name in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")},
    **ATTENTION_TAPS,
    **FEED_FORWARD_TAPS,
}
