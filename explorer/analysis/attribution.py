"""Direct logit attribution: what each part of the model adds to the score of a next token (Elhage et al. 2021)."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.edits import as_edited
from explorer.analysis.norms import centred, norm_scale, unembedding
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """A logit at one position, or the difference of two, as a sum of parts.

    What a part adds is its vector's product with the direction that the unembedding reads, taken through the norms that
    come after it. Every norm divides by what it divided the whole stream by in this run, so that it is linear and the
    parts add up exactly; what a part changes in later sublayers counts as theirs.

    Attributes:
        token: of the token's own embedding.
        positions: of the position that is added to it; 0 where none is.
        heads: (L, H), of every head's z through its columns of W_O.
        biases: (L,), of W_O's bias.
        feed_forward: (L,).
        shift: of the β of all norms.
        logit: the captured one, or difference.
    """

    token: float
    positions: float
    heads: np.ndarray
    biases: np.ndarray
    feed_forward: np.ndarray
    shift: float
    logit: float

    @property
    def total(self) -> float:
        sums = (part.sum() for part in (self.heads, self.biases, self.feed_forward))
        return float(self.token + self.positions + sum(sums) + self.shift)

    @property
    def size(self) -> float:
        """Of all parts together, whatever their signs."""
        sums = (np.abs(part).sum() for part in (self.heads, self.biases, self.feed_forward))
        return float(abs(self.token) + abs(self.positions) + sum(sums) + abs(self.shift))

    @property
    def error(self) -> float:
        return abs(self.total - self.logit)


def attribution(trace: Trace, position: int, token_id: int, rival_id: int | None = None) -> Attribution:
    """The parts of the logit of a token after `position`, minus those of its rival's if there is one; of a changed run,
    as the edits on the way to the logit leave them."""
    config, weights = trace.config, trace.weights
    read, logit = unembedding(trace, token_id), float(trace["logits"][position, token_id])
    if rival_id is not None:
        read, logit = read - unembedding(trace, rival_id), logit - float(trace["logits"][position, rival_id])

    def value(name: str) -> np.ndarray:
        return trace[name][..., position, :].astype(np.float64)

    heads = np.zeros((config.num_layers, config.num_heads))
    biases, feed_forward = np.zeros((2, config.num_layers))
    read, shift = before_norm(trace, "final_norm", value(f"blocks.{config.num_layers - 1}.resid_post"), read)
    for layer in reversed(range(config.num_layers)):
        block = f"blocks.{layer}"
        if config.norm_placement == "post":
            read, added = before_norm(trace, f"{block}.ffn_norm", value(f"{block}.resid_post"), read)
            shift += added
        read = as_edited(trace, f"{block}.resid_post", read)
        feed_forward[layer] = value(f"{block}.ffn.out") @ read
        if config.norm_placement == "post":
            read, added = before_norm(trace, f"{block}.attn_norm", value(f"{block}.resid_mid"), read)
            shift += added
        read = as_edited(trace, f"{block}.resid_mid", read)
        out, z = as_edited(trace, f"{block}.attn.out", read), value(f"{block}.attn.z")  # (D,), (H, d)
        heads[layer] = (z * (out @ weights[f"{block}.attn.o_proj.weight"]).reshape(z.shape)).sum(-1)
        biases[layer] = weights.get(f"{block}.attn.o_proj.bias", np.zeros_like(out)) @ out
        read = as_edited(trace, f"{block}.resid_pre", read)
    positions = float(value("position_embed") @ as_edited(trace, "embed", read)) if "position_embed" in trace else 0.0
    token = float(value("embed") @ read) - positions
    return Attribution(token, positions, heads, biases, feed_forward, shift, logit)


def by_kind(trace: Trace, taken: Attribution) -> dict[str, float]:
    """What each kind of part that the model has adds, all layers together.

    Kinds are "token", "position", "attention", W_O's biases with it, "feed_forward" and "shift", the β of the norms.
    """
    sums = {"token": taken.token} | ({"position": taken.positions} if "position_embed" in trace else {})
    sums |= {
        "attention": float(taken.heads.sum() + taken.biases.sum()),
        "feed_forward": float(taken.feed_forward.sum()),
    }
    return sums | ({"shift": taken.shift} if trace.config.norm == "layernorm" else {})


def before_norm(trace: Trace, name: str, x: np.ndarray, read: np.ndarray) -> tuple[np.ndarray, float]:
    """The direction that a product with the norm of x is in terms of x itself, and what β adds to that product:
    norm(x)·read = x·before + shift, with the norm's divisor held at x's, and with what edits make of the norm. `read`
    itself, but for edits, where there is no such norm."""
    read = as_edited(trace, name, read)
    if f"{name}.weight" not in trace.weights:
        return read, 0.0
    before = centred(trace, read * trace.weights[f"{name}.weight"]) / norm_scale(trace, x)
    return before, float(trace.weights.get(f"{name}.bias", np.zeros_like(read)) @ read)
