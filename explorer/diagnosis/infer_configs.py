"""Infer the config of a module: sizes from the shapes of its weights, the rest from its attributes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from torch import nn

from explorer.diagnosis.match_weights import MatchedModule, WeightMatch
from explorer.errors import UserError
from explorer.translations import _
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


def candidate_configs(
    module: nn.Module, match: WeightMatch, known_fields: Mapping[str, Any] | None = None
) -> Iterator[ModelConfig]:
    """Yield configs that the module may have, the likeliest first.

    Args:
        known_fields: fields of the config that are known.

    Raises:
        UserError: its weights are not those of a decoder-only transformer.
    """
    known_fields = dict(known_fields or {})
    inferred = _from_shapes(module, match) | known_fields
    own_heads = len(match.matched_modules["blocks.0.attn.q_proj"].heads)
    heads = known_fields.get("num_heads") or own_heads or find_attribute(module, HEADS)
    q_rows, k_rows = (match.matched_modules[f"blocks.0.attn.{name}_proj"].weight.shape[0] for name in "qk")
    counts = [heads] if heads else [q_rows // width for width in _head_widths(q_rows)]
    layouts = ("half_split", "adjacent") if match.name_table in ("llama", "order") else ("adjacent", "half_split")
    gated = inferred["ffn"] == "swiglu"
    activations = (
        ("swiglu", "geglu") if gated else (inferred["ffn"], *{"gelu", "gelu_tanh", "relu"} - {inferred["ffn"]})
    )
    if "ffn" in known_fields:
        activations = (known_fields["ffn"],)
    positions = ("rope", "sinusoidal", "none")
    if inferred["position"] == "learned" or "position" in known_fields:
        positions = (inferred["position"],)
    elif inferred["norm"] == "layernorm" and not gated:
        positions = ("sinusoidal", "rope", "none")
    for count, position, ffn, layout in product(counts, positions, activations, layouts):
        if position != "rope" and layout != layouts[0]:
            continue
        sizes = {"num_heads": count, "position": position, "ffn": ffn, "rope_layout": layout}
        if k_rows != q_rows:
            sizes["num_kv_heads"] = max(1, k_rows * count // q_rows)
            if not heads and k_rows * count % q_rows:
                continue
        if q_rows != inferred["d_model"] and q_rows % count == 0:
            sizes["head_dim"] = q_rows // count
        try:
            yield ModelConfig(**inferred | sizes | known_fields)
        except ModelError as error:
            if heads:
                raise UserError(_("The module’s sizes make no model: {why}", why=error)) from None


def _from_shapes(module: nn.Module, match: WeightMatch) -> dict[str, Any]:
    matched_modules = match.matched_modules
    required = [f"blocks.0.attn.{name}_proj" for name in "qkvo"] + ["blocks.0.ffn.up_proj", "blocks.0.ffn.down_proj"]
    for name in ("token_embedding", *required):
        if name not in matched_modules:
            raise UserError(
                _(
                    "No weight of the module was recognized as {name}: it is not a decoder-only transformer of "
                    "attention and feed-forward, or its names need a table (names=, --names).",
                    name=name,
                )
            )
    vocab_size, d_model = matched_modules["token_embedding"].weight.shape
    positions = matched_modules.get("position_embedding")
    norm = _norm_module(module, match)
    is_layernorm = norm is not None and ("layernorm" in type(norm).__name__.lower()) and not _is_rms(norm)
    if any(matched.bias is not None for name, matched in matched_modules.items() if "norm" in name):
        is_layernorm = True
    config = {
        "vocab_size": vocab_size,
        "context_length": _context_length(module, positions),
        "d_model": d_model,
        "num_layers": match.num_layers,
        "d_ff": matched_modules["blocks.0.ffn.up_proj"].weight.shape[0],
        "norm": "layernorm" if is_layernorm else "rmsnorm",
        "norm_eps": _find_number(norm, EPSILON, 1) or 1e-5,
        "position": "learned" if positions else "rope",
        "rope_theta": _theta(module),
        "ffn": "swiglu" if "blocks.0.ffn.gate_proj" in matched_modules else _activation(module),
        "bias": matched_modules["blocks.0.attn.o_proj"].bias is not None,
        "qkv_bias": matched_modules["blocks.0.attn.q_proj"].bias is not None,
        "unembedding_bias": "lm_head" in matched_modules and matched_modules["lm_head"].bias is not None,
        "tie_embeddings": _is_tied(match),
        "qk_norm": "blocks.0.attn.q_norm" in matched_modules,
    }
    config["unbiased_qkv"] = config["bias"] and not config["qkv_bias"]
    has_ffn_bias = any(matched_modules[f"blocks.0.ffn.{name}_proj"].bias is not None for name in ("up", "down"))
    config["ffn_bias"] = None if has_ffn_bias == config["bias"] else has_ffn_bias
    return config


def _head_widths(rows: int) -> list[int]:
    """Return the possible head widths, the usual ones first."""
    divisors = [width for width in range(rows, 0, -1) if rows % width == 0]
    return sorted(divisors, key=lambda width: WIDTHS.index(width) if width in WIDTHS else len(WIDTHS))


def _context_length(module: nn.Module, positions: MatchedModule | None) -> int:
    """Return the context length: the rows of learned positions, an attribute, or the rows of a 2-D buffer."""
    if positions is not None:
        return len(positions.weight)
    if length := find_attribute(module, CONTEXT):
        return int(length)
    tables = [len(table) for table in module.buffers() if table.ndim == 2 and table.is_floating_point()]
    return min(tables, default=DEFAULT_CONTEXT)


def _is_tied(match: WeightMatch) -> bool:
    if "lm_head" not in match.matched_modules:
        return True
    embedding, unembedding = match.matched_modules["token_embedding"].weight, match.matched_modules["lm_head"].weight
    return embedding.data_ptr() == unembedding.data_ptr() and embedding.shape == unembedding.shape


def _norm_module(module: nn.Module, match: WeightMatch) -> nn.Module | None:
    norms = [
        match.matched_modules[name] for name in ("blocks.0.attn_norm", "final_norm") if name in match.matched_modules
    ]
    return module.get_submodule(norms[0].module) if norms and norms[0].module else None


def _is_rms(norm: nn.Module) -> bool:
    return "rms" in type(norm).__name__.lower()


def _activation(module: nn.Module) -> str:
    names = [type(submodule).__name__.lower() for submodule in module.modules()]
    if any(isinstance(submodule, nn.GELU) and submodule.approximate == "tanh" for submodule in module.modules()):
        return "gelu_tanh"
    matches = (
        activation for class_name, activation in ACTIVATIONS.items() if any(class_name in name for name in names)
    )
    return next(matches, "gelu")


def _theta(module: nn.Module) -> float:
    config = getattr(module, "config", None)
    settings = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if isinstance(settings, dict) and settings.get("rope_theta"):
        return float(settings["rope_theta"])
    return float(find_attribute(module, THETA) or 10000.0)


def find_attribute(module: nn.Module, names: Sequence[str]) -> Any:
    """Return the first positive number with one of the names on the module, its config, or a submodule."""
    for owner in (module, getattr(module, "config", None), *module.modules()):
        if (value := _find_number(owner, names, float("inf"))) is not None:
            return value
    return None


def _find_number(owner: Any, names: Sequence[str], limit: float) -> Any:
    for name in names:
        value = owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < limit:
            return value
    return None


def with_context(config: ModelConfig, length: int) -> ModelConfig:
    """Return the config with a context of at least `length` tokens, unless positions are learned."""
    if config.position == "learned" or config.context_length >= length:
        return config
    return replace(config, context_length=length)
