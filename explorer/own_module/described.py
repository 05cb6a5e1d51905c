"""The config of a model that has a module's weights: sizes by their shapes, the rest by what its attributes say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from torch import nn

from explorer.language import _
from explorer.own_module.names import Match, Part
from explorer.state.errors import UserError
from model.config import ModelConfig
from model.errors import ModelError

HEADS = (
    *("num_heads", "n_heads", "n_head", "num_attention_heads", "nhead", "heads", "num_q_heads", "n_q_heads"),
    *("attn_heads", "num_attn_heads", "n_attn_heads", "num_query_heads"),
)
KV_HEADS = (
    *("num_kv_heads", "n_kv_heads", "n_kv_head", "num_key_value_heads", "kv_heads", "n_query_groups", "num_kv_groups"),
    *("n_kv", "n_kv_groups", "num_query_groups"),
)
CONTEXT = (
    *("context_length", "block_size", "max_position_embeddings", "max_seq_len", "n_positions", "seq_len", "n_ctx"),
    *("max_seq_length", "seq_length", "context_size", "ctx_len", "context_len"),
)
EPSILON = "eps", "variance_epsilon", "epsilon", "norm_eps"
THETA = "rope_theta", "theta", "base", "rope_base"
ACTIVATIONS = {"relu": "relu", "gelutanh": "gelu_tanh", "newgelu": "gelu_tanh", "gelu": "gelu"}
DEFAULT_CONTEXT = 256
WIDTHS = 32, 64, 16, 128, 8, 4, 2, 256


def configs(module: nn.Module, match: Match, given: Mapping[str, Any] | None = None) -> Iterator[ModelConfig]:
    """What the module may be, the likeliest first.

    Args:
        given: fields of the config that are known.

    Raises:
        UserError: its weights are not those of a decoder-only transformer.
    """
    given = dict(given or {})
    found = _from_shapes(module, match) | given
    heads = given.get("num_heads") or attribute(module, HEADS)
    q_rows, k_rows = (match.parts[f"blocks.0.attn.{name}_proj"].weight.shape[0] for name in "qk")
    counts = [heads] if heads else [q_rows // width for width in _widths(q_rows)]
    layouts = ("half_split", "adjacent") if match.spelling in ("llama", "order") else ("adjacent", "half_split")
    gated = found["ffn"] == "swiglu"
    activations = ("swiglu", "geglu") if gated else (found["ffn"], *{"gelu", "gelu_tanh", "relu"} - {found["ffn"]})
    if "ffn" in given:
        activations = (given["ffn"],)
    positions = ("rope", "sinusoidal", "none")
    if found["position"] == "learned" or "position" in given:
        positions = (found["position"],)
    elif found["norm"] == "layernorm" and not gated:
        positions = ("sinusoidal", "rope", "none")
    for count, position, ffn, layout in product(counts, positions, activations, layouts):
        if position != "rope" and layout != layouts[0]:
            continue
        sizes = {"num_heads": count, "position": position, "ffn": ffn, "rope_layout": layout}
        if k_rows != q_rows:
            sizes["num_kv_heads"] = max(1, k_rows * count // q_rows)
            if not heads and k_rows * count % q_rows:
                continue
        if q_rows != found["d_model"] and q_rows % count == 0:
            sizes["head_dim"] = q_rows // count
        try:
            yield ModelConfig(**found | sizes | given)
        except ModelError as error:
            if heads:
                raise UserError(_("The module’s sizes make no model: {why}", why=error)) from None


def _from_shapes(module: nn.Module, match: Match) -> dict[str, Any]:
    parts = match.parts
    wanted = [f"blocks.0.attn.{name}_proj" for name in "qkvo"] + ["blocks.0.ffn.up_proj", "blocks.0.ffn.down_proj"]
    for name in ("token_embedding", *wanted):
        if name not in parts:
            raise UserError(
                _(
                    "The module has nothing that stands for {name}: it is no decoder-only transformer of attention and "
                    "feed-forward, or its names need a table (names=, --names).",
                    name=name,
                )
            )
    vocab_size, d_model = parts["token_embedding"].weight.shape
    positions = parts.get("position_embedding")
    norm = _norm_module(module, match)
    is_layernorm = norm is not None and ("layernorm" in type(norm).__name__.lower()) and not _is_rms(norm)
    if any(part.bias is not None for name, part in parts.items() if "norm" in name):
        is_layernorm = True
    config = {
        "vocab_size": vocab_size,
        "context_length": _context(module, positions),
        "d_model": d_model,
        "num_layers": match.num_layers,
        "d_ff": parts["blocks.0.ffn.up_proj"].weight.shape[0],
        "norm": "layernorm" if is_layernorm else "rmsnorm",
        "norm_eps": _number(norm, EPSILON, 1) or 1e-5,
        "position": "learned" if positions else "rope",
        "rope_theta": _theta(module),
        "ffn": "swiglu" if "blocks.0.ffn.gate_proj" in parts else _activation(module),
        "bias": parts["blocks.0.attn.o_proj"].bias is not None or parts["blocks.0.ffn.down_proj"].bias is not None,
        "qkv_bias": parts["blocks.0.attn.q_proj"].bias is not None,
        "unembedding_bias": "lm_head" in parts and parts["lm_head"].bias is not None,
        "tie_embeddings": _is_tied(match),
        "qk_norm": "blocks.0.attn.q_norm" in parts,
    }
    config["unbiased_qkv"] = config["bias"] and not config["qkv_bias"]
    return config


def _widths(rows: int) -> list[int]:
    """How wide heads may be, the usual widths first."""
    divisors = [width for width in range(rows, 0, -1) if rows % width == 0]
    return sorted(divisors, key=lambda width: WIDTHS.index(width) if width in WIDTHS else len(WIDTHS))


def _context(module: nn.Module, positions: Part | None) -> int:
    """C: the rows of a table of positions, whether it is learned or holds cosines; or what an attribute says."""
    if positions is not None:
        return len(positions.weight)
    if said := attribute(module, CONTEXT):
        return int(said)
    tables = [len(table) for table in module.buffers() if table.ndim == 2 and table.is_floating_point()]
    return min(tables, default=DEFAULT_CONTEXT)


def _is_tied(match: Match) -> bool:
    if "lm_head" not in match.parts:
        return True
    one, other = match.parts["token_embedding"].weight, match.parts["lm_head"].weight
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape


def _norm_module(module: nn.Module, match: Match) -> nn.Module | None:
    norms = [match.parts[name] for name in ("blocks.0.attn_norm", "final_norm") if name in match.parts]
    return module.get_submodule(norms[0].module) if norms and norms[0].module else None


def _is_rms(norm: nn.Module) -> bool:
    return "rms" in type(norm).__name__.lower()


def _activation(module: nn.Module) -> str:
    names = [type(each).__name__.lower() for each in module.modules()]
    if any(isinstance(each, nn.GELU) and each.approximate == "tanh" for each in module.modules()):
        return "gelu_tanh"
    known = (ours for theirs, ours in ACTIVATIONS.items() if any(theirs in name for name in names))
    return next(known, "gelu")


def _theta(module: nn.Module) -> float:
    config = getattr(module, "config", None)
    said = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if isinstance(said, dict) and said.get("rope_theta"):
        return float(said["rope_theta"])
    return float(attribute(module, THETA) or 10000.0)


def attribute(module: nn.Module, names: Sequence[str]) -> Any:
    """The first positive number that the module, its config, or one of its parts has by one of the names."""
    for each in (module, getattr(module, "config", None), *module.modules()):
        if (found := _number(each, names, float("inf"))) is not None:
            return found
    return None


def _number(owner: Any, names: Sequence[str], most: float) -> Any:
    for name in names:
        value = owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < most:
            return value
    return None


def with_context(config: ModelConfig, length: int) -> ModelConfig:
    """The config, with room for so many tokens where positions are no weights."""
    if config.position == "learned" or config.context_length >= length:
        return config
    return replace(config, context_length=length)
