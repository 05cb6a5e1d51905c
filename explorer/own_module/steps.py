"""The values of a model in the order they are computed, each from what another's module has before it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.own_module.formulas import Formulas, attention, position_rows
from explorer.own_module.observing import Seen
from model.config import ModelConfig
from model.layers.softcap import softcap

IN_BLOCK = {  # tap -> names of what is seen of it, the best first; * is the block
    "attn_norm": ("*.attn.q_proj.in", "*.attn_norm.out"),
    "attn.q": ("*.attn.q_proj.out",),
    "attn.k": ("*.attn.k_proj.out",),
    "attn.v": ("*.attn.v_proj.out",),
    "attn.z": ("*.attn.o_proj.in",),
    "attn.out": ("*.attn.o_proj.out",),
    "resid_mid": ("*.ffn_norm.in",),
    "ffn_norm": ("*.ffn.up_proj.in", "*.ffn_norm.out"),
    "ffn.gate_pre": ("*.ffn.gate_proj.out",),
    "ffn.up": ("*.ffn.up_proj.out",),
    "ffn.hidden": ("*.ffn.down_proj.in",),
    "ffn.out": ("*.ffn.down_proj.out",),
    "resid_post": ("*.out",),
}
MAP_OF = {
    "attn.q": "attn.q_proj",
    "attn.k": "attn.k_proj",
    "attn.v": "attn.v_proj",
    "attn.out": "attn.o_proj",
    "ffn.gate_pre": "ffn.gate_proj",
    "ffn.up": "ffn.up_proj",
    "ffn.out": "ffn.down_proj",
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
    """

    config: ModelConfig
    seen_all: Seen
    weights: Mapping[str, Tensor]
    start: str
    taps: tuple[str, ...]
    seen: dict[str, Tensor] = field(default_factory=dict)

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
        for name in ("attn_norm", "ffn_norm", "final_norm"):
            if f"{self.start}{name}.{PROBE}.out" in self.seen_all.values and name in self.taps:
                self.seen[f"{name}.{PROBE}"] = self.seen_all.values[f"{self.start}{name}.{PROBE}.out"]
        self.taps = tuple(
            each for tap in self.taps for each in (tap, f"{tap}.{PROBE}") if each == tap or each in self.seen
        )


class Beginning(Scope):
    """Tokens to the stream."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor]):
        super().__init__(config, seen, weights, "", ("embed",))
        self.see({"embed": ("blocks.0.in", "blocks.0.attn_norm.in")})

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        ids = torch.tensor(self.seen_all.token_ids)
        table = position_rows(self.config, self.weights)
        return formulas.embed(self.weights["token_embedding.weight"][ids], table, self.config)


class Block(Scope):
    """One block; `entry` is what enters it."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor], layer: int, entry: Tensor):
        taps = tuple(tap for tap in IN_BLOCK if config.is_gated or tap != "ffn.gate_pre")
        super().__init__(config, seen, weights, f"blocks.{layer}.", taps)
        self.layer, self.entry = layer, seen.values.get(f"blocks.{layer}.in", entry)
        after = "final_norm.in" if layer == config.num_layers - 1 else f"blocks.{layer + 1}.attn_norm.in"
        following = f"blocks.{layer + 1}.in"
        self.see({**IN_BLOCK, "resid_post": ("*.out", following, after)})

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe(tap.removesuffix(f".{PROBE}"), formulas)
        if tap in self.wired:
            return self.wired[tap](self, formulas)
        if tap == "attn.z":
            return self.attention(formulas)["merged"]
        if tap == "ffn.hidden":
            gate = self.value("ffn.gate_pre", formulas) if self.config.is_gated else None
            return formulas.hidden(gate, self.value("ffn.up", formulas), self.config)
        return self.linear(tap, MAP_OF[tap], self.value(READS[tap], formulas), formulas)

    def attention(self, formulas: Formulas) -> dict[str, Tensor]:
        q, k, v = (self.value(f"attn.{name}", formulas) for name in "qkv")
        return attention(formulas, self.config, q, k, v, self.config.rotates(self.layer))

    def _wire(self, part: str, formulas: Formulas) -> Tensor:
        def norm_1(x):
            return self.norm("attn_norm", x, formulas)

        def norm_2(x):
            return self.norm("ffn_norm", x, formulas)

        a = self.value("attn.out", formulas) if part != "reads" else None
        m = self.value("resid_mid", formulas) if part in ("then", "leaves") else None
        # Where norms come last, the second reads what the feed-forward gives out: that is not asked of the formulas,
        # which would ask for what the second norm reads.
        f = self.value("ffn.out", formulas) if part == "leaves" else self.seen.get("ffn.out", self.entry * 0)
        return getattr(formulas.wiring, part)(self.entry, a, f, m, norm_1, norm_2)

    wired: Mapping[str, Callable] = {
        "attn_norm": lambda self, formulas: self._wire("reads", formulas),
        "resid_mid": lambda self, formulas: self._wire("middle", formulas),
        "ffn_norm": lambda self, formulas: self._wire("then", formulas),
        "resid_post": lambda self, formulas: self._wire("leaves", formulas),
    }


READS = {
    "attn.q": "attn_norm",
    "attn.k": "attn_norm",
    "attn.v": "attn_norm",
    "attn.out": "attn.z",
    "ffn.gate_pre": "ffn_norm",
    "ffn.up": "ffn_norm",
    "ffn.out": "ffn.hidden",
}


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
