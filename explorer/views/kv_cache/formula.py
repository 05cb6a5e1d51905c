"""The formula of what the KV cache saves at a step."""

from explorer.analysis.kv_cache import step_flops
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _
from model.parameter_and_flop_counts import kv_cache_bytes_per_token


def formula(trace: Trace, selection: Selection) -> str:
    """Return the size of the cache and the work that it saves, in numbers."""
    config, query = trace.config, selection.query
    stored, position_bytes = query + 1, kv_cache_bytes_per_token(config)
    layers, groups, width = config.num_layers, config.kv_heads, config.d_head
    with_cache, without = step_flops(config, query)
    lines = [
        _(
            "the step of {token} ({position}): {position} positions are stored, 1 is computed; without a cache all "
            "{stored} would be: {times} times the floating-point operations ({without} instead of {with_cache} "
            "million)",
            token=quote_token(trace.tokens[query]),
            position=query,
            stored=stored,
            times=format_number(without / with_cache),
            without=format_number(without / 1e6),
            with_cache=format_number(with_cache / 1e6),
        ),
        _(
            "counted are products of matrices, of each position’s scores those with itself and the positions before "
            "it: scores that the causal mask hides do not count, though a program may work them out and throw them away"
        ),
        _(
            "bytes a position = 2 (key, value) · layers · kv heads · d · 4 = 2·{layers}·{groups}·{width}·4 = {each:,}",
            layers=layers,
            groups=groups,
            width=width,
            each=position_bytes,
        ),
        _(
            "in the cache after it: {stored} · {each:,} = {now:,} bytes; at the end of the context: {context:,} · "
            "{each:,} = {most:,}",
            stored=stored,
            each=position_bytes,
            now=stored * position_bytes,
            context=config.context_length,
            most=config.context_length * position_bytes,
        ),
        _(
            "steps 1 to {stored}: {stored:,} positions computed instead of n (n + 1) / 2 = {instead:,}, (n + 1) / 2 = "
            "{times} times as many",
            stored=stored,
            instead=stored * (stored + 1) // 2,
            times=format_number((stored + 1) / 2),
        ),
    ]
    if groups < config.num_heads:
        shared = _(
            "{heads} query heads share {groups} kv heads: it takes {times} times less than {bytes:,} bytes a position",
            heads=config.num_heads,
            groups=groups,
            times=config.num_heads // groups,
            bytes=config.num_heads * position_bytes // groups,
        )
        lines.append(shared)
    return "\n".join(lines)
