"""The values of a model in the order they are computed, each from what another's module has before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.own_module.formulas import NORMS, Formulas, position_rows
from explorer.own_module.observing import Seen
from model.config import ModelConfig
from model.layers.softcap import softcap

FIRST_READ = {  # of a block, by where it normalises: where what enters it is seen
    "pre": ("attn_norm.in",),
    "parallel": ("attn_norm.in",),
    "post": ("attn.q_proj.in", "attn.in"),
    "output": ("attn.q_proj.in", "attn.in"),
}
PROBE = "probe"  # of a norm: what it makes of vectors as short as ε counts


@dataclass
class Scope:
    """A part of the model that is explained by itself: what comes before the blocks, a block, or what comes after.

    Attributes:
        taps: in the order they are computed.
        seen: tap -> what the module has there.
        weights: of the model, by our names.
        start: where the taps' whole names begin, as "blocks.3.".
        roles: tap -> what it is around a block's sublayers (see `wiring`), of those that are.
        asked: what is being worked out.
    """

    config: ModelConfig
    seen_all: Seen
    weights: Mapping[str, Tensor]
    start: str
    taps: tuple[str, ...]
    seen: dict[str, Tensor] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def value(self, tap: str, formulas: Formulas) -> Tensor:
        """What the module has at a tap, or what follows from what it has before."""
        return self.seen[tap] if tap in self.seen else self.expected(tap, formulas)

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        """What the formulas make of what the module has before a tap."""
        raise NotImplementedError

    def norm(self, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        whole = f"{self.start}{name}"
        if f"{whole}.weight" not in self.weights:
            return x
        gain, shift = self.weights[f"{whole}.weight"], self.weights.get(f"{whole}.bias")
        return formulas.norms[name](x, gain, shift, self.config.norm_eps)

    def read_by(self, tap: str) -> str | None:
        """Of what a map gives, the tap that it reads; None of others."""
        return None

    def linear(self, tap: str, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        weight, bias = self.weights[f"{self.start}{name}.weight"], self.weights.get(f"{self.start}{name}.bias")
        return formulas.linears.get(tap, F.linear)(x, weight, bias)

    def probe(self, name: str, formulas: Formulas) -> Tensor:
        return self.norm(name, self.seen_all.values[f"{self.start}{name}.{PROBE}.in"], formulas)

    def see(self, names: Mapping[str, tuple[str, ...]]) -> None:
        block = self.start.rstrip(".")
        for tap, found in names.items():
            for name in found:
                value = self.seen_all.values.get(name.replace("*", block))
                if value is not None and tap in self.taps:
                    self.seen[tap] = value
                    break
        for name in NORMS:
            if f"{self.start}{name}.{PROBE}.out" in self.seen_all.values and name in self.taps:
                self.seen[f"{name}.{PROBE}"] = self.seen_all.values[f"{self.start}{name}.{PROBE}.out"]
        self.taps = tuple(
            each for tap in self.taps for each in (tap, f"{tap}.{PROBE}") if each == tap or each in self.seen
        )


class Beginning(Scope):
    """Tokens to the stream."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor]):
        super().__init__(config, seen, weights, "", ("embed",))
        places = FIRST_READ[config.norm_placement]
        self.see({"embed": ("blocks.0.in", *(f"blocks.0.{name}" for name in places))})

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        ids = torch.tensor(self.seen_all.token_ids)
        table = position_rows(self.config, self.weights)
        return formulas.embed(self.weights["token_embedding.weight"][ids], table, self.config)


class End(Scope):
    """The stream to logits."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor], entry: Tensor):
        super().__init__(config, seen, weights, "", ("final_norm", "logits"))
        self.entry = entry
        self.see({"final_norm": ("lm_head.in", "final_norm.out"), "logits": ("logits",)})

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe("final_norm", formulas)
        if tap == "final_norm":
            return self.norm("final_norm", self.entry, formulas)
        logits = self.linear("logits", "lm_head", self.value("final_norm", formulas), formulas)
        return formulas.given(softcap(logits, self.config.logit_cap))
