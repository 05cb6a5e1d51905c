"""Calculations on the next-token distribution: probability, rank, surprisal and entropy."""

import math

import numpy as np

from explorer.explain.calculation import Calculation, Input
from explorer.explain.notation import format_number, format_sum
from explorer.translations import _

Inputs = tuple[Input, ...]  # of the logits (V,)


def log_total(logits: np.ndarray) -> float:
    """Return the log-sum-exp of the logits, ln Σ e^logits."""
    largest = float(logits.max())
    return largest + math.log(math.fsum(np.exp(logits - largest)))


def probability(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's softmax probability from the logits (V,)."""
    total = log_total(logits)
    p = math.exp(logits[token_id] - total)
    numbers = f"p = e^({format_number(logits[token_id])} − {format_number(total)}) = {format_number(p)}"
    return Calculation(_("p = e^(logit − ln Σ e^logits)"), lambda: numbers, p, inputs)


def rank(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's rank among the logits (V,), 1 the likeliest."""
    likelier = sum(1 for logit in logits.tolist() if logit > logits[token_id])
    return Calculation(
        _("rank = 1 + how many tokens have a larger logit"),
        lambda: _("rank = 1 + {likelier:,} = {rank:,}", likelier=likelier, rank=likelier + 1),
        likelier + 1.0,
        inputs,
    )


def entropy(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate the entropy of the distribution; `token_id` is not used."""
    shares = np.exp(logits - log_total(logits))
    terms = np.array([-p * math.log2(p) if p > 0 else 0.0 for p in shares.tolist()])
    bits = math.fsum(terms)
    return Calculation(
        _("entropy = −Σ p log₂ p"),
        lambda: _("entropy = {sum} = {bits} bits", sum=format_sum(terms), bits=format_number(bits)),
        bits,
        inputs,
    )


def surprisal(logits: np.ndarray, token_id: int, inputs: Inputs) -> Calculation:
    """Calculate a token's surprisal in bits from the logits (V,)."""
    bits = (log_total(logits) - float(logits[token_id])) / math.log(2)
    p = probability(logits, token_id, inputs).value
    return Calculation(
        _("surprisal = −log₂ p, p = e^logit / Σ e^logits"),
        lambda: _("surprisal = −log₂ {p} = {bits} bits", p=format_number(p), bits=format_number(bits)),
        bits,
        inputs,
    )
