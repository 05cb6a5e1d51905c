"""The formula of each tap, for all kinds of models."""

import re
from collections.abc import Callable
from functools import partial

from explorer.architecture.residual_stream import (
    added_taps,
    block_output_tap,
    has_final_norm,
    norm_input_tap,
    previous_residual_tap,
)
from explorer.explain.captured.embedding import (
    AngleFormula,
    EmbeddingFormula,
    LearnedPositionFormula,
    SinusoidalPositionFormula,
)
from explorer.explain.captured.formula import Formula
from explorer.explain.captured.linear import AdditionFormula, CopyFormula, LinearLayerFormula
from explorer.explain.captured.norms import NORM_LINES, NormFormula
from explorer.explain.captured.softcap import SoftcapFormula
from explorer.explain.captured.sublayer_formulas import ATTENTION_TAPS, FEED_FORWARD_TAPS
from explorer.explain.source_line import SourceLine
from model.config import ModelConfig

LM, BLOCK, TABLE = "model/transformer_lm.py", "model/layers/transformer_block.py", "model/layers/embedding.py"


def get_formula(config: ModelConfig, name: str) -> Formula:
    """Return the formula of a captured value; KeyError if there is none."""
    in_block = re.fullmatch(r"blocks\.(\d+)\.(.+)", name)
    formulas = IN_BLOCKS if in_block else OUTSIDE
    tap = in_block[2] if in_block else name
    if tap not in formulas:
        raise KeyError(f"no formula is known for {name!r}; it belongs in explorer/explain/captured/tap_formulas.py")
    return formulas[tap](config, int(in_block[1])) if in_block else formulas[tap](config)


def embedding_formula(config: ModelConfig) -> Formula:
    """Return the formula of the embedding."""
    positions = config.position in ("sinusoidal", "learned")
    line = SourceLine(TABLE, "return self.weight[token_ids]")
    if config.embedding_scale != 1:
        line = SourceLine(LM, "x = x * self.config.embedding_scale")
    if positions:
        line = SourceLine(LM, "x = (x + self.position_embed(")
    return EmbeddingFormula(positions, line)


def position_embedding_formula(config: ModelConfig) -> Formula:
    """Return the formula of the position embedding."""
    if config.position == "learned":
        return LearnedPositionFormula(SourceLine(TABLE, "return self.weight[token_ids]"))
    return SinusoidalPositionFormula(
        SourceLine("model/layers/sinusoidal.py", "return torch.stack((angles.sin(), angles.cos())")
    )


def final_norm_formula(config: ModelConfig) -> Formula:
    """Return the formula of the final norm; a copy of the stream if there is none."""
    stream = block_output_tap(config, config.num_layers - 1)
    if not has_final_norm(config):
        return CopyFormula("final_norm", stream, SourceLine(LM, "self.final_norm(x)"))
    return NormFormula("final_norm", CopyFormula("x", stream, LOGITS), "final_norm", NORM_LINES[config.norm])


LOGITS = SourceLine(LM, "logits = softcap(self.lm_head(x)")


def logits_formula(config: ModelConfig) -> Formula:
    """Return the formula of the logits."""
    plain = LinearLayerFormula("logit", "final_norm", "lm_head", LOGITS)
    return plain if config.logit_cap is None else SoftcapFormula("logit", plain, config.logit_cap, LOGITS)


def resid_pre_formula(config: ModelConfig, layer: int) -> Formula:
    """Return the formula of the residual stream before a block."""
    if layer == 0:
        return CopyFormula("resid_pre", "embed", SourceLine(LM, "x = self.dropout(self.embed_tokens("))
    return CopyFormula("resid_pre", block_output_tap(config, layer - 1), SourceLine(LM, "x = block(x, turns"))


def stream_sum_formula(name: str) -> Callable[[ModelConfig, int], Formula]:
    """Return the formula of a stream value: the previous value plus the outputs of sublayers."""

    def formula(config: ModelConfig, layer: int) -> Formula:
        value = f"blocks.{layer}.{name}"
        terms = previous_residual_tap(config, value), *added_taps(config, value)
        return AdditionFormula(name, terms, SourceLine(BLOCK, SUMS[config.norm_placement, name]))

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


def block_norm_formula(config: ModelConfig, layer: int, name: str) -> Formula:
    """Return the formula of one of a block's norms: of the input or output of a sublayer, or of the stream."""
    norm, line = f"blocks.{layer}.{name}", NORM_LINES[config.norm]
    return NormFormula(name, CopyFormula("x", norm_input_tap(config, norm), line), norm, line)


ROPE = SourceLine("model/layers/rope.py", "return torch.outer(positions, frequencies)")
OUTSIDE: dict[str, Callable[[ModelConfig], Formula]] = {
    "embed": embedding_formula,
    "position_embed": position_embedding_formula,
    "rope.angles": lambda config: AngleFormula(ROPE),
    "local_rope.angles": lambda config: AngleFormula(ROPE, local=True),
    "final_norm": final_norm_formula,
    "logits": logits_formula,
}
IN_BLOCKS: dict[str, Callable[[ModelConfig, int], Formula]] = {
    "resid_pre": resid_pre_formula,
    "resid_mid": stream_sum_formula("resid_mid"),
    "resid_post": stream_sum_formula("resid_post"),
    **{
        name: partial(block_norm_formula, name=name)
        for name in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")
    },
    **ATTENTION_TAPS,
    **FEED_FORWARD_TAPS,
}
