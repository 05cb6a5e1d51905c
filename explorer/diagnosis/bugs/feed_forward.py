"""Bugs in linear maps, and between the feed-forward's."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from explorer.diagnosis.reference_formulas import KnownBug
from explorer.translations import N_
from model.config import ModelConfig

MAPS = "attn.q", "attn.k", "attn.v", "attn.out", "ffn.gate_pre", "ffn.up", "ffn.out", "logits"


def multiply_untransposed(x, name, weights):
    """Return x W instead of x Wᵀ, which only square maps allow."""
    return F.linear(x, weights[f"{name}.weight"].T, weights.get(f"{name}.bias"))


def multiply_without_bias(x, name, weights):
    """Return the product with a map's weight, without its bias."""
    return F.linear(x, weights[f"{name}.weight"])


def linear_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of linear maps."""
    for name, text, product in (
        ("weight_transposed", N_("the weight is transposed: x W, not x Wᵀ"), multiply_untransposed),
        ("bias_left_out", N_("the bias is left out"), multiply_without_bias),
    ):

        def change(formulas, tap, product=product):
            plain_tap = tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap
            return formulas.replace(linears={**formulas.linears, plain_tap: product})

        yield KnownBug(name, text, "", MAPS, change)


def gelu_tanh(x):
    """Return GELU in its tanh approximation."""
    return F.gelu(x, approximate="tanh")


GATED_VARIANTS = (  # name, words, place, changed pieces
    (
        "gate_and_up_swapped",
        N_("gate and up are swapped: SiLU is taken of W₃ x"),
        "gate",
        {"gate_and_up": lambda gate, up: (up, gate)},
    ),
    ("gate_for_up", N_("the gate multiplies itself: W₃ x is not used"), "hidden", {"gate_and_up": lambda g, u: (g, g)}),
    ("up_for_gate", N_("W₃ x is its own gate: W₁ x is not used"), "gate_pre", {"gate_and_up": lambda g, u: (u, u)}),
    ("silu_of_both", N_("SiLU is taken of gate and up"), "hidden", {"gate_and_up": lambda g, u: (g, F.silu(u))}),
    ("silu_left_out", N_("SiLU is left out"), "gate", {"activation": lambda x: x}),
    ("sigmoid_for_silu", N_("the gate is a sigmoid, not SiLU"), "gate", {"activation": torch.sigmoid}),
    ("gelu_for_silu", N_("the gate is GELU, not SiLU"), "gate", {"activation": F.gelu}),
    ("gelu_tanh_for_silu", N_("the gate is GELU’s approximation, not SiLU"), "gate", {"activation": gelu_tanh}),
    ("relu_for_silu", N_("the gate is ReLU, not SiLU"), "gate", {"activation": torch.relu}),
    (
        "up_left_out",
        N_("the gate multiplies nothing: W₃ x is left out"),
        "hidden",
        {"joined": lambda active, other: active},
    ),
    ("gate_left_out", N_("the gate W₁ x is left out"), "hidden", {"joined": lambda active, other: other}),
    (
        "gate_added",
        N_("gate and up are added, not multiplied"),
        "hidden",
        {"joined": lambda active, other: active + other},
    ),
    (
        "silu_of_product",
        N_("SiLU is taken of the product"),
        "hidden",
        {"gate_and_up": lambda g, u: (g * u, torch.ones_like(u))},
    ),
)
UNGATED_VARIANTS = (
    ("relu_for_activation", N_("the activation is ReLU"), torch.relu),
    ("relu2_for_activation", N_("the activation is ReLU²"), lambda x: torch.relu(x).square()),
    ("gelu_for_activation", N_("the activation is GELU"), F.gelu),
    ("gelu_tanh_for_activation", N_("the activation is GELU’s approximation"), gelu_tanh),
    ("silu_for_activation", N_("the activation is SiLU"), F.silu),
    ("tanh_for_activation", N_("the activation is tanh"), torch.tanh),
    ("activation_left_out", N_("the activation is left out"), lambda x: x),
)


def feed_forward_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of the feed-forward."""
    for name, text, first_tap, pieces in GATED_VARIANTS:
        yield KnownBug(name, text, f"ffn.{first_tap}", ("ffn.hidden",), change_hidden_pieces(pieces), is_gated)
    for name, text, activation in UNGATED_VARIANTS:
        pieces = {"activation": activation}
        yield KnownBug(
            name, text, "ffn.hidden", ("ffn.hidden",), change_hidden_pieces(pieces), lambda config: not config.is_gated
        )


def is_gated(config: ModelConfig) -> bool:
    """Return whether the feed-forward is gated."""
    return config.is_gated


def change_hidden_pieces(pieces: Mapping[str, Any]):
    """Return a change of the formulas that replaces pieces of the hidden layer's formula."""
    return lambda formulas, tap: formulas.replace(hidden=formulas.hidden.replace(**pieces))
