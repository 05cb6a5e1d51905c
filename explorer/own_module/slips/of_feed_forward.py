"""Slips between the feed-forward's maps."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from explorer.language import N_
from explorer.own_module.slips.slip import Slip

GATED = (
    ("gate_and_up_swapped", N_("gate and up are swapped: SiLU is taken of W₃ x"), "gate", lambda g, u: g * F.silu(u)),
    ("silu_left_out", N_("SiLU is left out"), "gate", lambda g, u: g * u),
    ("sigmoid_for_silu", N_("the gate is a sigmoid, not SiLU"), "gate", lambda g, u: torch.sigmoid(g) * u),
    ("gelu_for_silu", N_("the gate is GELU, not SiLU"), "gate", lambda g, u: F.gelu(g) * u),
    (
        "gelu_tanh_for_silu",
        N_("the gate is GELU’s approximation, not SiLU"),
        "gate",
        lambda g, u: F.gelu(g, approximate="tanh") * u,
    ),
    ("relu_for_silu", N_("the gate is ReLU, not SiLU"), "gate", lambda g, u: torch.relu(g) * u),
    ("up_left_out", N_("the gate multiplies nothing: W₃ x is left out"), "hidden", lambda g, u: F.silu(g)),
    ("gate_left_out", N_("the gate W₁ x is left out"), "hidden", lambda g, u: u),
    ("gate_added", N_("gate and up are added, not multiplied"), "hidden", lambda g, u: F.silu(g) + u),
    ("silu_of_product", N_("SiLU is taken of the product"), "hidden", lambda g, u: F.silu(g * u)),
)
PLAIN = (
    ("relu_for_activation", N_("the activation is ReLU"), torch.relu),
    ("relu2_for_activation", N_("the activation is ReLU²"), lambda x: torch.relu(x).square()),
    ("gelu_for_activation", N_("the activation is GELU"), F.gelu),
    ("gelu_tanh_for_activation", N_("the activation is GELU’s approximation"), lambda x: F.gelu(x, approximate="tanh")),
    ("silu_for_activation", N_("the activation is SiLU"), F.silu),
    ("tanh_for_activation", N_("the activation is tanh"), torch.tanh),
    ("activation_left_out", N_("the activation is left out"), lambda x: x),
)


def feed_forward_slips() -> Iterator[Slip]:
    for name, words, place, hidden in GATED:

        def change(formulas, tap, hidden=hidden):
            def made(gate_pre, up, config):
                return formulas.hidden(gate_pre, up, config) if gate_pre is None else hidden(gate_pre, up)

            return formulas.but(hidden=made)

        yield Slip(name, words, f"ffn.{place}", ("ffn.hidden",), change)
    for name, words, activation in PLAIN:

        def changed(formulas, tap, activation=activation):
            def made(gate_pre, up, config):
                return activation(up) if gate_pre is None else formulas.hidden(gate_pre, up, config)

            return formulas.but(hidden=made)

        yield Slip(name, words, "ffn.hidden", ("ffn.hidden",), changed)
