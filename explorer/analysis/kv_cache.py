"""The KV cache: norms of the stored vectors, memory and computation saved in generation."""

import numpy as np

from explorer.explain import arithmetic
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import ALL, Calculation, Derivation, read_input
from explorer.explain.notation import format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from model.config import ModelConfig
from model.parameter_and_flop_counts import flops_table, kv_cache_bytes_per_token


def cached_tap(trace: Trace, layer: int, kind: str) -> str:
    """Return the tap of the cached keys ("k"), after rotation if the model uses RoPE, or values ("v") of a layer."""
    name = f"blocks.{layer}.attn.{kind}"
    return f"{name}_rot" if kind == "k" and f"{name}_rot" in trace else name


def cached_norms(trace: Trace, layer: int, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of the cached vector of every kv head and position, (G, T)."""
    return np.linalg.norm(trace[cached_tap(trace, layer, kind)], axis=-1)


def cached_norms_all_heads(trace: Trace, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of each layer's cached vectors of a position, all kv heads concatenated, (L, T)."""
    return np.stack([np.linalg.norm(cached_norms(trace, i, kind), axis=0) for i in range(trace.config.num_layers)])


def positions_computed(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of positions computed after each generation step, with and without a cache, (steps,) each.

    With a cache n after n steps; without one 1 + 2 + … + n = n (n + 1) / 2.
    """
    n = np.arange(1, steps + 1)
    return n, n * (n + 1) // 2


def megabytes_stored(config: ModelConfig, positions: np.ndarray | int, shared: bool = True) -> np.ndarray | float:
    """Return the memory of the cached keys and values of `positions` positions, 4 bytes a number.

    If not `shared`, as if every query head had its own keys and values.
    """
    bytes_per_token = kv_cache_bytes_per_token(config)
    bytes_per_token = bytes_per_token if shared else bytes_per_token * config.num_heads // config.kv_heads
    return positions * (bytes_per_token / 1e6)


def step_flops(config: ModelConfig, position: int) -> tuple[int, int]:
    """Return the floating-point operations of a generation step, with a cache and without one.

    Without a cache, all positions up to `position` are computed again.
    """
    flops = [sum(row.count for row in flops_table(config, keys)) for keys in range(1, position + 2)]
    return flops[-1], sum(flops)


FILE = "explorer/analysis/kv_cache.py"
# kind -> label of the norm for one kv head, and for all
NORM_NAMES = {
    "k": (
        N_("length of the key of layer {layer}, kv head {group}"),
        N_("length of the keys of layer {layer}, all kv heads"),
    ),
    "v": (
        N_("length of the value of layer {layer}, kv head {group}"),
        N_("length of the values of layer {layer}, all kv heads"),
    ),
}


def cached_vector_norm(
    trace: Trace, kind: str, layer: int, group: int | None, position: int, query: int
) -> Derivation | None:
    """Derive the norm of a cached vector of a position, for one kv head or all; None if not cached yet."""
    norms = (
        cached_norms_all_heads(trace, kind)[layer : layer + 1] if group is None else cached_norms(trace, layer, kind)
    )
    displayed_value = get_element(norms, group or 0, position)
    if position > query:
        return None
    x, read = read_input(trace, cached_tap(trace, layer, kind), ALL if group is None else group, position)
    return Derivation(
        translate(NORM_NAMES[kind][group is None], layer=layer, group=group),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,)),
        SourceLine(FILE, "return np.stack([" if group is None else "return np.linalg.norm(trace["),
    )


def cache_megabytes(trace: Trace, stored: int, shared: bool) -> Derivation:
    """Derive the memory of the cache after some positions, with kv heads shared as in the model or not."""
    config = trace.config
    heads = config.kv_heads if shared else config.num_heads
    value = 2 * config.num_layers * heads * config.d_head * 4 * stored / 1e6
    factors = f"2·{config.num_layers}·{heads}·{config.d_head}·4·{stored}"
    working = Calculation(
        _("2 (key, value) · layers · kv heads · d · 4 bytes · positions / 10⁶")
        if shared
        else _("2 (key, value) · layers · heads · d · 4 bytes · positions / 10⁶"),
        lambda: f"{factors} / 1,000,000 = {format_six_digits(value)}",
        value,
        (),
    )
    return Derivation(
        _("megabytes in the cache"),
        ngettext("after {count} position", "after {count} positions", stored),
        float(megabytes_stored(config, stored, shared)),
        working,
        SourceLine(FILE, "return positions * (bytes_per_token / 1e6)"),
    )


def derive_positions_computed(trace: Trace, step: int, cached: bool) -> Derivation:
    """Derive the number of positions computed up to a generation step, with a cache or without."""
    displayed_value = get_element(positions_computed(len(trace))[0 if cached else 1], step - 1)
    value = float(step if cached else sum(range(1, step + 1)))
    working = Calculation(
        _("n, one a step") if cached else "1 + 2 + … + n = n (n + 1) / 2",
        lambda: f"{step}" if cached else f"{step} · {step + 1} / 2 = {int(value):,}",
        value,
        (),
    )
    name = _("positions computed with the cache") if cached else _("positions computed without a cache")
    location = ngettext("in {count} step", "in {count} steps", step)
    return Derivation(name, location, displayed_value, working, SourceLine(FILE, "return n, n * (n + 1) // 2"))
