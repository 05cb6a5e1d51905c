"""The values of a model in the order they are computed, each from what another's module has before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from explorer.own_module.formulas import NORMS, Formulas, angles, linear, position_rows
from explorer.own_module.observing import Seen
from explorer.own_module.off import Off
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
        choices: tap -> what it has where that is seen at several places.
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
    choices: dict[str, list[Tensor]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def value(self, tap: str, formulas: Formulas) -> Tensor:
        """What the module has at a tap, or what follows from what it has before."""
        return self.seen[tap] if tap in self.seen else self.expected(tap, formulas)

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        """What the formulas make of what the module has before a tap."""
        raise NotImplementedError

    def norm(self, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        whole = formulas.norms[name].weights(f"{self.start}{name}")
        if f"{whole}.weight" not in self.weights:
            return x
        gain, shift = self.weights[f"{whole}.weight"], self.weights.get(f"{whole}.bias")
        return formulas.norms[name](x, gain, shift, self.config.norm_eps)

    def owner(self, tap: str) -> str:
        """The whole name of the module of ours whose weight gives a tap, "" of others."""
        at = tap.removesuffix(f".{PROBE}")
        name = {"embed": "token_embedding", "logits": "lm_head"}.get(at, at if at in NORMS else "")
        return f"{self.start}{name}" if name else ""

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        """What may be added up to a tap, by name: of what a map gives that alone, of norms and what sublayers make of
        their maps nothing."""
        name = self.map_of(tap)
        if not name:
            return {}
        weight = f"{self.start}{name}"
        return (
            {name: linear(self.read_value(tap, formulas), weight, self.weights)}
            if f"{weight}.weight" in self.weights
            else {}
        )

    def map_of(self, tap: str) -> str:
        """The map that gives a tap, "" of others."""
        return ""

    def read_value(self, tap: str, formulas: Formulas) -> Tensor:
        """What the map that gives a tap reads."""
        return self.value(self.read_by(tap), formulas)

    def on_the_way(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        """What the formulas make right before a tap, each (H, T, n), of which the module's values can be seen."""
        return {}

    def place_of_factor(self, terms: Mapping[str, float]) -> str:
        """The tap at which one of the terms already has its factor, "" where it gets that in the sum."""
        return ""

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        """The formulas with which a tap is a sum of its terms with these coefficients."""
        (factor,) = terms.values()

        def product(x: Tensor, name: str, weights: Mapping[str, Tensor]) -> Tensor:
            return factor * linear(x, name, weights)

        return formulas.but(linears={**formulas.linears, tap: product})

    def read_by(self, tap: str) -> str | None:
        """Of what a map gives, the tap that it reads; None of others."""
        return None

    def linear(self, tap: str, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        return formulas.linears.get(tap, linear)(x, f"{self.start}{name}", self.weights)

    def probe(self, name: str, formulas: Formulas) -> Tensor:
        return self.norm(name, self.seen_all.values[f"{self.start}{name}.{PROBE}.in"], formulas)

    def see(self, names: Mapping[str, tuple[str | tuple[str, ...], ...]]) -> None:
        """Note what the module has at taps.

        Args:
            names: tap -> names under which that is seen, the best first; several in a tuple are as good.
        """
        block = self.start.rstrip(".")
        for tap, groups in names.items():
            for group in groups if tap in self.taps else ():
                equals = (group,) if isinstance(group, str) else group
                values = [self.seen_all.values.get(name.replace("*", block)) for name in equals]
                if found := [value for value in values if value is not None]:
                    self.seen[tap], self.choices[tap] = found[0], found
                    break
        for name in NORMS:
            if f"{self.start}{name}.{PROBE}.out" in self.seen_all.values and name in self.taps:
                self.seen[f"{name}.{PROBE}"] = self.seen_all.values[f"{self.start}{name}.{PROBE}.out"]
        self.taps = tuple(
            each for tap in self.taps for each in (tap, f"{tap}.{PROBE}") if each == tap or each in self.seen
        )

    def choose(self, formulas: Formulas) -> None:
        """Take of what is seen of a value at several places that which is the least wrong: the others show later."""
        for tap in self.taps:
            if len(values := self.choices.get(tap, ())) > 1:
                wanted = self.expected(tap, formulas)
                self.seen[tap] = min(values, key=lambda value: max(Off.of(value, wanted).times, 1.0))


class Beginning(Scope):
    """Tokens to the stream."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor]):
        super().__init__(config, seen, weights, "", ("embed",))
        places = FIRST_READ[config.norm_placement]
        first = f"blocks.{seen.order[0] if seen.order else 0}"
        self.see({"embed": ((f"{first}.in", *(f"{first}.{name}" for name in places)),)})

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        ids = torch.tensor(self.seen_all.token_ids)
        table = position_rows(self.config, self.weights)
        return formulas.embed(self.weights[f"{formulas.table}.weight"][ids], table, self.config)

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        rows = self.weights[f"{formulas.table}.weight"][torch.tensor(self.seen_all.token_ids)]
        return self._terms(rows, position_rows(self.config, self.weights), formulas)

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        def embed(rows: Tensor, table: Tensor | None, config: ModelConfig) -> Tensor:
            values = self._terms(rows, table, formulas)
            return sum(factor * values[name] for name, factor in terms.items())

        return formulas.but(embed=embed)

    def _terms(self, rows: Tensor, table: Tensor | None, formulas: Formulas) -> dict[str, Tensor]:
        terms = {"token_embedding": rows}
        if table is not None:
            table = table[: len(rows)]
            terms |= {"positions": table, "token_embedding · positions": rows * table}
        usual = formulas.embed(rows, table, self.config)
        terms["final_norm"] = self.norm("final_norm", usual, formulas)
        if self.config.position == "rope":
            cos_sin = angles(formulas, self.config, torch.arange(len(rows)))
            terms["rotated token_embedding"] = rotated(formulas, self.config, usual, *cos_sin)
        return terms


def rotated(formulas: Formulas, config: ModelConfig, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A stream that is rotated as queries are, where its width is theirs."""
    if x.shape[-1] != config.num_heads * config.d_head:
        return x * 0
    return formulas.merge(formulas.rotate(formulas.split(x, config.num_heads), cos, sin))


class End(Scope):
    """The stream to logits."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor], entry: Tensor):
        super().__init__(config, seen, weights, "", ("final_norm", "logits"))
        self.entry = entry
        self.see({"final_norm": ("lm_head.in", "final_norm.out"), "logits": ("logits",)})

    def map_of(self, tap: str) -> str:
        return "lm_head" if tap == "logits" else ""

    def read_value(self, tap: str, formulas: Formulas) -> Tensor:
        return self.value("final_norm", formulas)

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe("final_norm", formulas)
        if tap == "final_norm":
            return self.norm("final_norm", self.entry, formulas)
        logits = self.linear("logits", "lm_head", self.value("final_norm", formulas), formulas)
        return formulas.given(softcap(logits, self.config.logit_cap))
