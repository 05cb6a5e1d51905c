"""Contributions of each token to a prediction by four methods, among them attention rollout (Abnar & Zuidema 2020)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.explain.arithmetic import dot_product
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Calculation, Derivation, Input, read_input
from explorer.explain.notation import (
    format_dot_product,
    format_factor,
    format_query_key,
    format_six_digits,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import RecomputationCheck
from explorer.tracing.trace import Trace
from explorer.translations import _


def attention_rollout(trace: Trace, query: int) -> np.ndarray:
    """Return the attention rollout of a query, (T,): weights of all positions, which sum to 1.

    In every layer half of a vector comes from the token itself, along the residual stream, and half from the keys
    of the mean head: Ã = ½ A + ½ I (§3, with rows normalised). This is the query's row of Ã_L … Ã_2 Ã_1.
    """
    row = np.eye(len(trace))[query]
    for layer in reversed(range(trace.config.num_layers)):
        attention = trace[f"blocks.{layer}.attn.pattern"].mean(0, dtype=np.float64)  # (T, T)
        row = 0.5 * (row @ (attention / attention.sum(-1, keepdims=True))) + 0.5 * row
    return row


METHODS = ("gradient", "integrated", "rollout", "knock_out")
MIN_TOKENS = 4  # for a rank correlation


@dataclass(frozen=True)
class TokenContributions:
    """Contributions of tokens to f, a logit at a position or its difference to a contrast token's logit.

    Attributes:
        by_method: for each of METHODS (N,), for the N tokens up to the position. Gradients and knock-out in units
            of f, above 0 if the token raises f; rollout weights sum to 1. The knock-out of the last token is NaN.
        f, f_baseline: f of the run, and of the baseline of integrated gradients.
        arrays: the underlying values, see `explorer.tracing.token_attribution.token_contributions`.
    """

    by_method: Mapping[str, np.ndarray]
    f: float
    f_baseline: float
    arrays: Mapping[str, np.ndarray]

    @property
    def completeness_error(self) -> float:
        """Σ − (f(x) − f(baseline)) of integrated gradients, which tends to 0 with the number of steps."""
        return float(self.by_method["integrated"].sum() - (self.f - self.f_baseline))

    def agreement(self, method: str, other: str) -> float:
        """Return Spearman's rank correlation of two methods over all tokens but the last.

        NaN for fewer than four tokens, and if a method gives all tokens the same value.
        """
        pair = [ranks_with_ties(self.by_method[name][:-1]) for name in (method, other)]
        if len(pair[0]) < MIN_TOKENS or any(np.ptp(token_ranks) == 0 for token_ranks in pair):
            return float("nan")
        return float(np.corrcoef(*pair)[0, 1])


def token_contributions(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> TokenContributions:
    """Compute the contributions to the logit of a token after a position, or to a logit difference.

    Raises the errors of `Trace.token_contributions`.
    """
    arrays = trace.token_contributions(position, token_id, contrast_id)
    x, baseline = arrays["embed"], arrays["baseline"]
    f = float(arrays["f"])
    by_method = {
        "gradient": (x * arrays["slope"]).sum(-1),
        "integrated": ((x - baseline) * arrays["mean_slope"]).sum(-1),
        "rollout": attention_rollout(trace, position)[: position + 1],
        "knock_out": f - arrays["without"],
    }
    return TokenContributions(by_method, f, float(arrays["f_baseline"]), arrays)


def ranks_with_ties(values: np.ndarray) -> np.ndarray:
    """Return ranks from 0; ties get their mean rank."""
    below = (values[:, None] > values).sum(1)
    return below + ((values[:, None] == values).sum(1) - 1) / 2


def rollout_weight(trace: Trace, query: int, key: int) -> Derivation:
    """Derive an attention rollout weight of a query and a key, from the last step, through layer 0."""
    displayed_value = get_element(attention_rollout(trace, query), key)
    row, inputs = np.eye(len(trace))[query], []
    for layer in reversed(range(trace.config.num_layers)):
        patterns, read = read_input(trace, f"blocks.{layer}.attn.pattern")
        mean, above = patterns.mean(0), row
        mean = mean / mean.sum(-1, keepdims=True)
        row = (above @ mean + above) / 2
        inputs.append(read)
    value = float(row[key])
    working = Calculation(
        _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"),
        lambda: (
            f"½ {format_dot_product(above, mean[:, key])} + ½ {format_six_digits(above[key])} "
            f"= {format_six_digits(value)}"
        ),
        value,
        tuple(reversed(inputs)),
    )
    source = SourceLine(FILE, "row = 0.5 * (row @ ")
    return Derivation(
        _("share of attention rollout"), format_query_key(trace, query, key), displayed_value, working, source
    )


FILE = "explorer/analysis/token_contributions.py"


def token_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, method: str, key: int
) -> Derivation | None:
    """Derive a token's contribution by one of METHODS; None if the method has no value for it."""
    contributions = token_contributions(trace, position, token_id, contrast_id)
    displayed_value = get_element(contributions.by_method[method], key)
    if math.isnan(displayed_value):
        return None
    if method == "rollout":
        return rollout_weight(trace, position, key)
    derive_method = {
        "gradient": _gradient_contribution,
        "integrated": _integrated_gradient_contribution,
        "knock_out": _attention_knockout_contribution,
    }[method]
    name, working, fragment = derive_method(trace, contributions, position, token_id, contrast_id, key)
    return Derivation(
        name,
        _("of {token}", token=format_token_position(trace, key)),
        displayed_value,
        working,
        SourceLine(FILE, fragment),
    )


def _gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope = contributions.arrays["slope"][key]
    inputs = read, Input(_("gradient of the logit at embed"), (key,), slope.shape)
    return _("gradient × input"), dot_product("Σ x ∂logit/∂x =", x, slope, inputs), '"gradient": (x'


def _integrated_gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope, baseline = (contributions.arrays[name][key] for name in ("mean_slope", "baseline"))
    inputs = read, Input(_("mean gradient of the logit along the path"), (key,), slope.shape)
    working = dot_product(_("Σ (x − baseline) · mean ∂logit/∂x ="), x - baseline, slope, inputs)
    return _("integrated gradients"), working, '"integrated": ((x'


def _attention_knockout_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    logits, read = read_input(trace, "logits", position)
    f = float(logits[token_id] - (0 if contrast_id is None else logits[contrast_id]))
    without = float(contributions.arrays["without"][key])
    rerun_input = Input(
        _("logits of a run in which no later token sees it, at [{query}]", query=position), (), read.shape
    )
    change = f - without
    numbers = f"{format_six_digits(f)} − {format_factor(without)} = {format_six_digits(change)}"
    working = Calculation(_("logit − logit without it"), lambda: numbers, change, (read, rerun_input))
    return _("knock-out"), working, '"knock_out": f'


def check_gradient_run(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> RecomputationCheck:
    """Check f of the run that the gradients were computed in against the captured logits."""
    logits = trace.logits.row(position).astype(float)
    captured = logits[token_id] - (0 if contrast_id is None else logits[contrast_id])
    f = token_contributions(trace, position, token_id, contrast_id).f
    return RecomputationCheck.from_arrays(trace.dtype, f, captured, abs(logits).max())
