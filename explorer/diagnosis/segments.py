"""Segments of a model, whose values are each computed from the module's preceding values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.record_values import RecordedValues
from explorer.diagnosis.reference_formulas import NORMS, Formulas, linear, position_embedding_rows, rotation_tables
from model.config import ModelConfig
from model.layers.attention import softcap

FIRST_INPUTS = {  # norm placement -> where a block's input is recorded
    "pre": ("attn_norm.in",),
    "parallel": ("attn_norm.in",),
    "post": ("attn.q_proj.in", "attn.in"),
    "output": ("attn.q_proj.in", "attn.in"),
}
PROBE = "probe"  # suffix of a norm's output for vectors so short that ε matters


@dataclass
class ModelSegment:
    """A segment that is diagnosed by itself: the embedding, a block, or the unembedding.

    Attributes:
        recorded: all values of the module.
        weights: of the model, by our names.
        start: prefix of the taps' full names, such as "blocks.3.".
        taps: in the order of computation.
        tap_values: tap -> the module's value there.
        choices: tap -> its values where it is recorded at several places.
        roles: tap -> its role in the block's dataflow (see `dataflow`), if any.
        in_progress: names of values being computed, to detect cycles.
    """

    config: ModelConfig
    recorded: RecordedValues
    weights: Mapping[str, Tensor]
    start: str
    taps: tuple[str, ...]
    tap_values: dict[str, Tensor] = field(default_factory=dict)
    choices: dict[str, list[Tensor]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    in_progress: set[str] = field(default_factory=set)

    def value(self, tap: str, formulas: Formulas) -> Tensor:
        """Return the module's value at a tap, or else the expected one."""
        return self.tap_values[tap] if tap in self.tap_values else self.expected_value(tap, formulas)

    def expected_value(self, tap: str, formulas: Formulas) -> Tensor:
        """Compute a tap with the formulas from the module's preceding values."""
        raise NotImplementedError

    def norm(self, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        """Apply a norm of the segment by the formulas; return x if the module has no such norm."""
        weight_name = formulas.norms[name].weights(f"{self.start}{name}")
        if f"{weight_name}.weight" not in self.weights:
            return x
        gain, shift = self.weights[f"{weight_name}.weight"], self.weights.get(f"{weight_name}.bias")
        return formulas.norms[name](x, gain, shift, self.config.norm_eps)

    def owner(self, tap: str) -> str:
        """Return the full name of our module whose weight computes a tap; "" for other taps."""
        plain_tap = tap.removesuffix(f".{PROBE}")
        name = {"embed": "token_embedding", "logits": "lm_head"}.get(plain_tap, plain_tap if plain_tap in NORMS else "")
        return f"{self.start}{name}" if name else ""

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        """Return the candidate terms of the sum at a tap, by name.

        For a map's output that is the output itself; for norms and activations there are none.
        """
        name = self.map_name(tap)
        if not name:
            return {}
        weight = f"{self.start}{name}"
        return (
            {name: linear(self.read_value(tap, formulas), weight, self.weights)}
            if f"{weight}.weight" in self.weights
            else {}
        )

    def map_name(self, tap: str) -> str:
        """Return the map that computes a tap; "" for other taps."""
        return ""

    def read_value(self, tap: str, formulas: Formulas) -> Tensor:
        """Return the input of the map that computes a tap."""
        return self.value(self.input_tap(tap), formulas)

    def intermediate_values(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        """Return the intermediate values right before a tap, each (H, T, n), which the module's may match."""
        return {}

    def scaled_tap(self, terms: Mapping[str, float]) -> str:
        """Return the tap at which a term is already scaled by its factor; "" where the sum scales it."""
        return ""

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        """Return the formulas with which a tap is the sum of its terms times these factors."""
        (factor,) = terms.values()

        def product(x: Tensor, name: str, weights: Mapping[str, Tensor]) -> Tensor:
            return factor * linear(x, name, weights)

        return formulas.replace(linears={**formulas.linears, tap: product})

    def input_tap(self, tap: str) -> str | None:
        """Return the tap that the map of an output tap reads; None for other taps."""
        return None

    def linear(self, tap: str, name: str, x: Tensor, formulas: Formulas) -> Tensor:
        """Apply a map of the segment by the formulas."""
        return formulas.linears.get(tap, linear)(x, f"{self.start}{name}", self.weights)

    def probe(self, name: str, formulas: Formulas) -> Tensor:
        """Return a norm's output for the vectors that it is probed with."""
        return self.norm(name, self.recorded.values[f"{self.start}{name}.{PROBE}.in"], formulas)

    def record(self, names: Mapping[str, tuple[str | tuple[str, ...], ...]]) -> None:
        """Look up the module's values at taps.

        Args:
            names: tap -> names under which it is recorded, the best first; those in a tuple are equally good.
        """
        block = self.start.rstrip(".")
        for tap, groups in names.items():
            for group in groups if tap in self.taps else ():
                equals = (group,) if isinstance(group, str) else group
                values = [self.recorded.values.get(name.replace("*", block)) for name in equals]
                if recorded_values := [value for value in values if value is not None]:
                    self.tap_values[tap], self.choices[tap] = recorded_values[0], recorded_values
                    break
        for name in NORMS:
            if f"{self.start}{name}.{PROBE}.out" in self.recorded.values and name in self.taps:
                self.tap_values[f"{name}.{PROBE}"] = self.recorded.values[f"{self.start}{name}.{PROBE}.out"]
        self.taps = tuple(
            expanded_tap
            for tap in self.taps
            for expanded_tap in (tap, f"{tap}.{PROBE}")
            if expanded_tap == tap or expanded_tap in self.tap_values
        )

    def choose_values(self, formulas: Formulas) -> None:
        """Choose, for values recorded at several places, the one closest to the expected value: others show later."""
        for tap in self.taps:
            if len(values := self.choices.get(tap, ())) > 1:
                expected = self.expected_value(tap, formulas)
                self.tap_values[tap] = min(
                    values, key=lambda value: max(Deviation.between(value, expected).ratio_to_tolerance, 1.0)
                )


class EmbeddingSegment(ModelSegment):
    """The segment from tokens to the residual stream."""

    def __init__(self, config: ModelConfig, recorded: RecordedValues, weights: Mapping[str, Tensor]):
        super().__init__(config, recorded, weights, "", ("embed",))
        input_names = FIRST_INPUTS[config.norm_placement]
        first = f"blocks.{recorded.order[0] if recorded.order else 0}"
        self.record({"embed": ((f"{first}.in", *(f"{first}.{name}" for name in input_names)),)})

    def expected_value(self, tap: str, formulas: Formulas) -> Tensor:
        ids = torch.tensor(self.recorded.token_ids)
        table = position_embedding_rows(self.config, self.weights)
        return formulas.embed(self.weights[f"{formulas.table}.weight"][ids], table, self.config)

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        rows = self.weights[f"{formulas.table}.weight"][torch.tensor(self.recorded.token_ids)]
        return self._terms(rows, position_embedding_rows(self.config, self.weights), formulas)

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        def embed(rows: Tensor, table: Tensor | None, config: ModelConfig) -> Tensor:
            values = self._terms(rows, table, formulas)
            return sum(factor * values[name] for name, factor in terms.items())

        return formulas.replace(embed=embed)

    def _terms(self, rows: Tensor, table: Tensor | None, formulas: Formulas) -> dict[str, Tensor]:
        terms = {"token_embedding": rows}
        if table is not None:
            table = table[: len(rows)]
            terms |= {"positions": table, "token_embedding · positions": rows * table}
        usual = formulas.embed(rows, table, self.config)
        terms["final_norm"] = self.norm("final_norm", usual, formulas)
        if self.config.position == "rope":
            cos_sin = rotation_tables(formulas, self.config, torch.arange(len(rows)))
            terms["rotated token_embedding"] = rotate_stream(formulas, self.config, usual, *cos_sin)
        return terms


def rotate_stream(formulas: Formulas, config: ModelConfig, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return a stream rotated as queries are, or 0 if its width is not theirs."""
    if x.shape[-1] != config.num_heads * config.d_head:
        return x * 0
    return formulas.merge(formulas.rotate(formulas.split(x, config.num_heads), cos, sin))


class UnembeddingSegment(ModelSegment):
    """The segment from the residual stream to logits."""

    def __init__(self, config: ModelConfig, recorded: RecordedValues, weights: Mapping[str, Tensor], entry: Tensor):
        super().__init__(config, recorded, weights, "", ("final_norm", "logits"))
        self.entry = entry
        self.record({"final_norm": ("lm_head.in", "final_norm.out"), "logits": ("logits",)})

    def map_name(self, tap: str) -> str:
        return "lm_head" if tap == "logits" else ""

    def read_value(self, tap: str, formulas: Formulas) -> Tensor:
        return self.value("final_norm", formulas)

    def expected_value(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe("final_norm", formulas)
        if tap == "final_norm":
            return self.norm("final_norm", self.entry, formulas)
        logits = self.linear("logits", "lm_head", self.value("final_norm", formulas), formulas)
        return formulas.output(softcap(logits, self.config.logit_cap))
