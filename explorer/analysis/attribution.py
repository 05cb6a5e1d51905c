"""Direct logit attribution: what each part of the model adds to the logit of a next token (Elhage et al. 2021)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from explorer.analysis.interventions import as_edited, put_in, puts_in
from explorer.analysis.kept import kept_by_trace
from explorer.analysis.norms import centred, kinds, norm_scale, normalised, shift_of
from explorer.analysis.unembedding import unembedding, unembedding_bias
from explorer.architecture.layout import layout
from explorer.architecture.shifts import has_shifts
from explorer.architecture.stream import (
    added_at,
    before_value,
    block_output,
    given_out,
    input_of,
    joining,
    output_norm,
    stream_norms,
    stream_taps,
    sublayers,
)
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """A logit at one position, or the difference of two, as a sum of parts.

    What a part adds is its vector's product with the direction that the unembedding reads, taken through the norms that
    come after it. Every norm divides by what it divided the whole stream by in this run, and a cap of the logits
    multiplies by what it multiplied the whole logit by, so that they are linear and the parts add up exactly; what a
    part changes in later sublayers counts as theirs.

    Attributes:
        token: of the token's own embedding.
        positions: of the position that is added to it; 0 where none is.
        heads: (L, H), of every head's z through its columns of W_O.
        biases: (L,), of W_O's bias.
        feed_forward: (L,).
        shift: of the β of all norms, and of the unembedding's bias.
        logit: the captured one, or difference.
        changes: of what edits put into the stream besides.
    """

    token: float
    positions: float
    heads: np.ndarray
    biases: np.ndarray
    feed_forward: np.ndarray
    shift: float
    logit: float
    changes: float = 0.0

    @property
    def total(self) -> float:
        sums = (part.sum() for part in (self.heads, self.biases, self.feed_forward))
        return float(self.token + self.positions + sum(sums) + self.shift + self.changes)

    @property
    def size(self) -> float:
        """Of all parts together, whatever their signs."""
        sums = (np.abs(part).sum() for part in (self.heads, self.biases, self.feed_forward))
        return float(abs(self.token) + abs(self.positions) + sum(sums) + abs(self.shift) + abs(self.changes))

    @property
    def error(self) -> float:
        return abs(self.total - self.logit)


@kept_by_trace
def attribution(trace: Trace, position: int, token_id: int, rival_id: int | None = None) -> Attribution:
    """The parts of the logit of a token after `position`, minus those of its rival's if there is one; of a changed run,
    as the edits on the way to the logit leave them."""
    config, weights = trace.config, trace.weights
    read, logit = unembedding(trace, token_id, position), float(trace.logits.of(token_id, position))
    shift = unembedding_bias(trace, token_id, position)
    if rival_id is not None:
        read = read - unembedding(trace, rival_id, position)
        logit = logit - float(trace.logits.of(rival_id, position))
        shift -= unembedding_bias(trace, rival_id, position)

    def value(name: str) -> np.ndarray:
        return trace[name][..., position, :].astype(np.float64)

    def sum_of(*names: str) -> Callable[[], np.ndarray]:
        return lambda: sum(map(value, names))

    changes = 0.0

    def before(name: str, read: np.ndarray, unchanged: Callable[[], np.ndarray]) -> np.ndarray:
        """What is read before the edits of a value, of what is read after them; `unchanged` gives the value before."""
        nonlocal changes
        if puts_in(trace, name):
            changes += float(put_in(trace, name, unchanged(), position) @ read)
        return as_edited(trace, name, read, position, back=True)

    def before_norm(name: str, x: str, read: np.ndarray) -> np.ndarray:
        nonlocal shift
        read = before(name, read, lambda: normalised(trace, name, value(x), position))
        if f"{name}.weight" in weights:
            read, added = through_norm(trace, name, value(x), read, position)
            shift += added
        return read

    heads = np.zeros((config.num_layers, config.num_heads))
    biases, feed_forward = np.zeros((2, config.num_layers))

    def of_attention(layer: int, read: np.ndarray) -> None:
        block = f"blocks.{layer}.attn"
        z, table = value(f"{block}.z"), weights[f"{block}.o_proj.weight"][:]  # (H, d), (D, H d)
        bias = weights.get(f"{block}.o_proj.bias", np.zeros_like(read))
        out = before(f"{block}.out", read, lambda: table @ z.reshape(-1) + bias)  # (D,)
        columns = np.einsum("k,ki->i", out, table)  # unlike `@`, without a copy of the table in float64
        heads[layer] = (z * columns.reshape(z.shape)).sum(-1)
        biases[layer] = bias @ out

    def of_feed_forward(layer: int, read: np.ndarray) -> None:
        feed_forward[layer] = value(f"blocks.{layer}.ffn.out") @ read

    parts = {"attn": of_attention, "ffn": of_feed_forward}
    read = before_norm("final_norm", block_output(config, config.num_layers - 1), read)
    sums, norms = layout(config).sums, stream_norms(config)
    for layer in reversed(range(config.num_layers)):
        for place in reversed(layout(config).stream):
            name = f"blocks.{layer}.{place}"
            if place in norms:
                read = before_norm(name, input_of(config, name), read)
                continue
            read = before(name, read, sum_of(before_value(config, name), *added_at(config, name)))
            for sublayer in sums.get(place, ()):
                norm, out = output_norm(config, layer, sublayer), given_out(layer, sublayer)
                parts[sublayer](layer, read if norm is None else before_norm(norm, out, read))
    row = weights["token_embedding.weight"][trace.token_ids[position]].astype(np.float64)
    row = row * config.embedding_scale
    position_row = value("position_embed") if "position_embed" in trace else np.zeros_like(row)
    at_embed = value("embed") @ read
    put = changes
    read = before("embed", read, lambda: row + position_row)
    positions = float(position_row @ read)
    token = float(at_embed) - positions - (changes - put)
    return Attribution(token, positions, heads, biases, feed_forward, shift, logit, changes)


def by_kind(trace: Trace, taken: Attribution) -> dict[str, float]:
    """What each kind of part that the model has adds, all layers together.

    Kinds are "token", "position", "attention", W_O's biases with it, "feed_forward", "shift", the β of the norms and
    the unembedding's bias, and "changes", what edits of a run put in besides.
    """
    sums = {"token": taken.token} | ({"position": taken.positions} if "position_embed" in trace else {})
    sums |= {
        "attention": float(taken.heads.sum() + taken.biases.sum()),
        "feed_forward": float(taken.feed_forward.sum()),
    }
    sums |= {"shift": taken.shift} if has_shifts(trace.config) else {}
    return sums | ({"changes": taken.changes} if is_put_in(trace) else {})


def is_put_in(trace: Trace) -> bool:
    """Whether edits put anything into the stream that is no part of the model's."""
    config = trace.config
    joined = (name for sublayer in sublayers(config) for name in joining(config, *sublayer))
    on_the_way = (name for name in joined if not name.endswith("ffn.out"))  # which counts as the feed-forward's
    return any(puts_in(trace, name) for name in (*stream_taps(config), *on_the_way))


def through_norm(trace: Trace, name: str, x: np.ndarray, read: np.ndarray, position: int) -> tuple[np.ndarray, float]:
    """The direction that a product with the norm of x at a position is in terms of x itself, and what β adds to that
    product: norm(x)·read = x·before + shift, with the norm's divisor held at x's. `read` itself where there is no such
    norm."""
    if f"{name}.weight" not in trace.weights:
        return read, 0.0
    before = centred(read * trace.weights[f"{name}.weight"], kinds(trace, name, position))
    return before / norm_scale(trace, x, name, position), float(np.sum(shift_of(trace, name, position) * read))
