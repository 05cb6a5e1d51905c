"""Lengths of what the cache holds, and what it costs and saves."""

from explorer.analysis.kv_cache import cached_lengths, cached_name, megabytes_stored, positions_computed, whole_lengths
from explorer.explain.analysed import arithmetic
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import ALL, Working, take
from explorer.language import N_, _, look_up, ngettext
from explorer.tracing.trace import Trace

CACHE = "explorer/analysis/kv_cache.py"
# part -> the length of what is stored of one kv head; and of all
LENGTHS = {
    "k": (
        N_("length of the key of layer {layer}, kv head {group}"),
        N_("length of the keys of layer {layer}, all kv heads"),
    ),
    "v": (
        N_("length of the value of layer {layer}, kv head {group}"),
        N_("length of the values of layer {layer}, all kv heads"),
    ),
}


def length(trace: Trace, part: str, layer: int, group: int | None, position: int, query: int) -> Derivation | None:
    """Of what is stored of a position, of one kv head or of all; None where nothing is yet."""
    lengths = whole_lengths(trace, part)[layer : layer + 1] if group is None else cached_lengths(trace, layer, part)
    drawn = element(lengths, group or 0, position)
    if position > query:
        return None
    x, read = take(trace, cached_name(trace, layer, part), ALL if group is None else group, position)
    return Derivation(
        look_up(LENGTHS[part][group is None], layer=layer, group=group),
        at(trace, position),
        drawn,
        arithmetic.length(x, (read,)),
        Source(CACHE, "return np.stack([" if group is None else "return np.linalg.norm(trace["),
    )


def megabytes(trace: Trace, stored: int, shared: bool) -> Derivation:
    """In the cache after so many positions, of heads as they share keys and values or as if none did."""
    config = trace.config
    heads = config.kv_heads if shared else config.num_heads
    value = 2 * config.num_layers * heads * config.d_head * 4 * stored / 1e6
    factors = f"2·{config.num_layers}·{heads}·{config.d_head}·4·{stored}"
    working = Working(
        _("2 (key, value) · layers · kv heads · d · 4 bytes · positions / 10⁶")
        if shared
        else _("2 (key, value) · layers · heads · d · 4 bytes · positions / 10⁶"),
        lambda: f"{factors} / 1,000,000 = {number(value)}",
        value,
        (),
    )
    return Derivation(
        _("megabytes in the cache"),
        ngettext("after {count} position", "after {count} positions", stored),
        float(megabytes_stored(config, stored, shared)),
        working,
        Source(CACHE, "return positions * (each / 1e6)"),
    )


def computed(trace: Trace, step: int, cached: bool) -> Derivation:
    """Positions that have gone through the model by a step of a token, with a cache or without."""
    drawn = element(positions_computed(len(trace))[0 if cached else 1], step - 1)
    value = float(step if cached else sum(range(1, step + 1)))
    working = Working(
        _("n, one a step") if cached else "1 + 2 + … + n = n (n + 1) / 2",
        lambda: f"{step}" if cached else f"{step} · {step + 1} / 2 = {int(value):,}",
        value,
        (),
    )
    name = _("positions computed with the cache") if cached else _("positions computed without a cache")
    place = ngettext("in {count} step", "in {count} steps", step)
    return Derivation(name, place, drawn, working, Source(CACHE, "return n, n * (n + 1) // 2"))
