"""Segments of a model, whose values are each computed from the preceding ones, and the deviation of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from explorer.diagnosis.record_values import SECOND_RUN, RecordedValues
from explorer.diagnosis.reference_formulas import (
    DATAFLOWS,
    NORMS,
    ROLES,
    VALUE_ORDER,
    ModelFormulas,
    Value,
    attention_values,
    linear,
    position_embedding_rows,
    rotation_tables,
)
from explorer.explain.derivation import tolerance
from model.config import ModelConfig
from model.layers.attention import softcap

TOLERANCE = tolerance("float32")  # relative to a position's largest number
MIN_SCALE = 1e-30


@dataclass(frozen=True)
class Deviation:
    """The deviation of a value from its expected value.

    Attributes:
        largest: the largest absolute difference.
        scale: the largest absolute expected number.
        by_position: (T,) largest difference at each position / rounding tolerance.
    """

    largest: float
    scale: float
    by_position: Tensor

    @classmethod
    def between(cls, actual: Tensor, expected: Tensor) -> "Deviation":
        """Compare two tensors; infinite for different shapes, 0 where both are NaN."""
        if actual.shape != expected.shape:
            return cls(float("inf"), 0.0, torch.full((len(actual),), float("inf")))
        same = (actual == expected) | (actual.isnan() & expected.isnan())
        difference = torch.where(same, 0.0, (actual - expected).abs()).nan_to_num(float("inf"), float("inf"))
        magnitudes = torch.maximum(actual.abs(), expected.abs()).nan_to_num(0.0, 0.0, 0.0).amax(-1)
        return cls(
            difference.max().item(),
            expected.nan_to_num(0.0, 0.0, 0.0).abs().max().item(),
            difference.amax(-1) / (TOLERANCE * magnitudes + MIN_SCALE),
        )

    @property
    def ratio_to_tolerance(self) -> float:
        return self.by_position.max().item()

    @property
    def differs(self) -> bool:
        return not self.ratio_to_tolerance <= 1


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

    def value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        """Return the module's value at a tap, or else the expected one."""
        return self.tap_values[tap] if tap in self.tap_values else self.expected_value(tap, formulas)

    def expected_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        """Compute a tap with the formulas from the module's preceding values."""
        raise NotImplementedError

    def norm(self, name: str, x: Tensor, formulas: ModelFormulas) -> Tensor:
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

    def terms(self, tap: str, formulas: ModelFormulas) -> dict[str, Tensor]:
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

    def read_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        """Return the input of the map that computes a tap."""
        return self.value(self.input_tap(tap), formulas)

    def intermediate_values(self, tap: str, formulas: ModelFormulas) -> dict[str, Tensor]:
        """Return the intermediate values right before a tap, each (H, T, n), which the module's may match."""
        return {}

    def scaled_tap(self, terms: Mapping[str, float]) -> str:
        """Return the tap at which a term is already scaled by its factor; "" where the sum scales it."""
        return ""

    def with_sum(self, formulas: ModelFormulas, tap: str, terms: Mapping[str, float]) -> ModelFormulas:
        """Return the formulas with which a tap is the sum of its terms times these factors."""
        (factor,) = terms.values()

        def product(x: Tensor, name: str, weights: Mapping[str, Tensor]) -> Tensor:
            return factor * linear(x, name, weights)

        return replace(formulas, linears={**formulas.linears, tap: product})

    def input_tap(self, tap: str) -> str | None:
        """Return the tap that the map of an output tap reads; None for other taps."""
        return None

    def linear(self, tap: str, name: str, x: Tensor, formulas: ModelFormulas) -> Tensor:
        """Apply a map of the segment by the formulas."""
        return formulas.linears.get(tap, linear)(x, f"{self.start}{name}", self.weights)

    def probe(self, name: str, formulas: ModelFormulas) -> Tensor:
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

    def choose_values(self, formulas: ModelFormulas) -> None:
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

    def expected_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        ids = torch.tensor(self.recorded.token_ids)
        table = position_embedding_rows(self.config, self.weights)
        return formulas.embed(self.weights[f"{formulas.table}.weight"][ids], table, self.config)

    def terms(self, tap: str, formulas: ModelFormulas) -> dict[str, Tensor]:
        rows = self.weights[f"{formulas.table}.weight"][torch.tensor(self.recorded.token_ids)]
        return self._terms(rows, position_embedding_rows(self.config, self.weights), formulas)

    def with_sum(self, formulas: ModelFormulas, tap: str, terms: Mapping[str, float]) -> ModelFormulas:
        def embed(rows: Tensor, table: Tensor | None, config: ModelConfig) -> Tensor:
            values = self._terms(rows, table, formulas)
            return sum(factor * values[name] for name, factor in terms.items())

        return replace(formulas, embed=embed)

    def _terms(self, rows: Tensor, table: Tensor | None, formulas: ModelFormulas) -> dict[str, Tensor]:
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


def rotate_stream(formulas: ModelFormulas, config: ModelConfig, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
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

    def read_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        return self.value("final_norm", formulas)

    def expected_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe("final_norm", formulas)
        if tap == "final_norm":
            return self.norm("final_norm", self.entry, formulas)
        logits = self.linear("logits", "lm_head", self.value("final_norm", formulas), formulas)
        return formulas.output(softcap(logits, self.config.logit_cap))


RECORDED_NAMES = {  # tap or role -> names under which it is recorded besides its map or norm, the best first
    "block_input": (("*.in", "*.attn_norm.in"),),
    "attn_input": (("*.attn.q_proj.in", "*.attn.k_proj.in", "*.attn.v_proj.in"), "*.attn.in"),
    "attn.z": ("*.attn.o_proj.in",),
    "attn.out": ("*.attn.out",),
    "first_norm_input": ("*.attn_norm.in",),
    "second_norm_input": (("*.ffn_norm.in", f"*.ffn_norm.in{SECOND_RUN}"),),
    "ffn_input": (("*.ffn.up_proj.in", "*.ffn.gate_proj.in"), "*.ffn.in"),
    "ffn.hidden": ("*.ffn.down_proj.in",),
    "ffn.out": ("*.ffn.out",),
}
MAPS = {  # output of a map -> the map, and its input: a tap or a role
    "attn.q": ("attn.q_proj", "attn_input"),
    "attn.k": ("attn.k_proj", "attn_input"),
    "attn.v": ("attn.v_proj", "attn_input"),
    "attn.out": ("attn.o_proj", "attn.z"),
    "ffn.gate_pre": ("ffn.gate_proj", "ffn_input"),
    "ffn.up": ("ffn.up_proj", "ffn_input"),
    "ffn.out": ("ffn.down_proj", "ffn.hidden"),
}

TERM_VALUES: dict[str, Value] = {  # candidate terms of the residual stream's sums
    "previous resid_post": lambda b: b.before,
    "positions": lambda b: b.positions,
    "resid_pre": lambda b: b.x,
    "attn.out": lambda b: b.a,
    "attn_norm": lambda b: b.n1(b.x),
    "resid_mid": lambda b: b.m,
    "ffn.out": lambda b: b.f,
    "ffn_norm": lambda b: b.n2(b.m),
    "resid_pre · attn.out": lambda b: b.x * b.a,
    "resid_mid · ffn.out": lambda b: b.m * b.f,
}
TERM_NAMES = {
    "block_input": ("previous resid_post", "positions"),
    "second_norm_input": ("resid_pre", "attn.out", "attn_norm", "resid_pre · attn.out"),
    "block_output": ("resid_mid", "ffn.out", "ffn_norm", "resid_pre", "attn.out", "resid_mid · ffn.out"),
}


class BlockSegment(ModelSegment):
    """One transformer block; `entry` is the residual stream that enters it."""

    def __init__(
        self, config: ModelConfig, recorded: RecordedValues, weights: Mapping[str, Tensor], layer: int, entry: Tensor
    ):
        role = ROLES[config.norm_placement]
        self.output_tap = role["block_output"]
        tap_by_name = {
            value_name: role.get(value_name, value_name) for value_name in VALUE_ORDER[config.norm_placement]
        }
        taps = tuple(tap for tap in tap_by_name.values() if config.is_gated or tap != "ffn.gate_pre")
        super().__init__(config, recorded, weights, f"blocks.{layer}.", taps)
        self.roles = {tap: value_name for value_name, tap in tap_by_name.items() if value_name in role}
        self.layer, self.before = layer, entry
        following = [
            f"blocks.{layer + 1}.in",
            *(f"blocks.{layer + 1}.{name}" for name in FIRST_INPUTS[config.norm_placement]),
        ]
        if layer == config.num_layers - 1:
            following = ["final_norm.in"] if config.norm_placement != "post" else ["lm_head.in"]
        self.record(
            {tap: self._tap_aliases(value_name, tap) for value_name, tap in tap_by_name.items()}
            | {role["block_output"]: ("*.out", *following)}
        )

    def _tap_aliases(self, value_name: str, tap: str) -> tuple[str | tuple[str, ...], ...]:
        """Return the names under which a value is recorded, including a map's or norm's output where it is one."""
        output_of_map = (f"*.{self.map_name(tap)}.out",) if tap in MAPS else ()
        return (*output_of_map, *RECORDED_NAMES.get(value_name, ()), *([f"*.{tap}.out"] if tap in NORMS else []))

    def expected_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe(tap.removesuffix(f".{PROBE}"), formulas)
        if tap in self.roles:
            return getattr(formulas.dataflow, self.roles[tap])(BlockValues(self, formulas))
        if tap in NORMS:  # of what a sublayer gives out
            read = formulas.dataflow.first_norm_input if tap == "attn_norm" else formulas.dataflow.second_norm_input
            return self.norm(tap, read(BlockValues(self, formulas)), formulas)
        if tap == "attn.z":
            return self.attention(formulas)["merged"]
        if tap == "ffn.hidden":
            gate = self.used_value("ffn.gate_pre", formulas) if self.config.is_gated else None
            return formulas.hidden(gate, self.used_value("ffn.up", formulas))
        reads = formulas.linear_inputs.get(tap)
        x = self.value(self.input_tap(tap), formulas) if reads is None else reads(BlockValues(self, formulas))
        return self.linear(tap, self.map_name(tap), x, formulas)

    def used_value(self, tap: str, formulas: ModelFormulas) -> Tensor:
        """Return a tap's value after the formulas' `uses`, which pass it on unchanged unless a bug replaces one."""
        value, use = self.value(tap, formulas), formulas.uses.get(tap)
        return value if use is None else use(value, lambda x: self.linear(tap, self.map_name(tap), x, formulas))

    def recompute(self, entry: Tensor, formulas: ModelFormulas, tap: str, start: str = "resid_pre") -> Tensor:
        """Return a tap computed by the formulas only, from the value `entry` at the tap `start`."""
        other = BlockSegment(self.config, RecordedValues(self.recorded.token_ids), self.weights, self.layer, entry)
        other.tap_values[start] = entry
        return other.value(tap, formulas)

    def owner(self, tap: str) -> str:
        role = {"attn_input": "attn_norm", "ffn_input": "ffn_norm"}.get(self.roles.get(tap, ""), "")
        name = self.map_name(tap) or (role if tap in NORMS else "")
        return f"{self.start}{name}" if name else super().owner(tap)

    def map_name(self, tap: str) -> str:
        return MAPS.get(tap, ("", None))[0]

    def terms(self, tap: str, formulas: ModelFormulas) -> dict[str, Tensor]:
        if tap in MAPS:
            return super().terms(tap, formulas)
        names = TERM_NAMES.get(self.roles.get(tap, ""), ())
        block_values = BlockValues(self, formulas)
        return {name: TERM_VALUES[name](block_values) for name in names}

    def scaled_tap(self, terms: Mapping[str, float]) -> str:
        for tap in ("attn.out", "ffn.out"):
            output = self.recorded.values.get(f"{self.start}{tap.split('.')[0]}.out")  # what the whole sublayer gives
            if terms.get(tap, 1) == 1 or tap not in self.tap_values or output is None:
                continue
            if not Deviation.between(output, terms[tap] * self.tap_values[tap]).differs:
                return tap
        return ""

    def with_sum(self, formulas: ModelFormulas, tap: str, terms: Mapping[str, float]) -> ModelFormulas:
        if tap in MAPS:
            return super().with_sum(formulas, tap, terms)

        def value(block_values: BlockValues) -> Tensor:
            return sum(factor * TERM_VALUES[name](block_values) for name, factor in terms.items())

        return replace(formulas, dataflow=replace(formulas.dataflow, **{self.roles[tap]: value}))

    def intermediate_values(self, tap: str, formulas: ModelFormulas) -> dict[str, Tensor]:
        if tap == "attn.z":
            return {name: value for name, value in self.attention(formulas).items() if name != "merged"}
        if tap != "ffn.hidden":
            return {}
        up = self.used_value("ffn.up", formulas)
        gate = self.used_value("ffn.gate_pre", formulas) if self.config.is_gated else up
        active = formulas.hidden.activation(gate)
        return {name: value[None] for name, value in (("gate_pre", gate), ("up", up), ("gate", active))}

    def input_tap(self, tap: str) -> str | None:
        read = MAPS.get(tap, ("", None))[1]
        return ROLES[self.config.norm_placement].get(read, read)

    def attention(self, formulas: ModelFormulas) -> dict[str, Tensor]:
        q, k, v = (self.used_value(f"attn.{name}", formulas) for name in "qkv")
        return attention_values(formulas, self.config, q, k, v, self.config.has_rope(self.layer))


class BlockValues:
    """The values around a block's sublayers: the module's where recorded, else those that the formulas compute.

    Attributes:
        before: the previous block's output, or the embedding.
        x: the block's input.
        a: the attention's output.
        f: the feed-forward's output.
        m: the second norm's input.
    """

    def __init__(self, block: BlockSegment, formulas: ModelFormulas):
        self.block, self.formulas, self.before = block, formulas, block.before

    @property
    def x(self) -> Tensor:
        if "block_input" in self.block.roles.values():
            return self.block.value("resid_pre", self.formulas)
        return self.block.recorded.values.get(f"{self.block.start}in", self.before)

    @property
    def a(self) -> Tensor:
        return self.block.used_value("attn.out", self.formulas)

    @property
    def f(self) -> Tensor:
        return self._break_cycle("ffn.out", lambda: self.block.used_value("ffn.out", self.formulas))

    @property
    def positions(self) -> Tensor:
        """The vectors added for positions; 0 where none are added."""
        table = position_embedding_rows(self.block.config, self.block.weights)
        return self.before * 0 if table is None else table[: len(self.before)]

    def attend(self, x: Tensor) -> Tensor:
        return self.block.recompute(x, self.formulas, "attn.out", self.block.input_tap("attn.q"))

    def feed(self, x: Tensor) -> Tensor:
        return self.block.recompute(x, self.formulas, "ffn.out", self.block.input_tap("ffn.up"))

    def apply_block(self, x: Tensor) -> Tensor:
        """Apply the whole block, with its usual dataflow, to a residual stream."""
        usual = replace(self.formulas, dataflow=DATAFLOWS[self.block.config.norm_placement])
        return self.block.recompute(x, usual, self.block.output_tap)

    def active(self, x: Tensor) -> Tensor:
        return self.formulas.hidden.activation(x)

    @property
    def m(self) -> Tensor:
        def second_norm_input():
            norm_tap = next((tap for tap, role in self.block.roles.items() if role == "second_norm_input"), None)
            recorded = self.block.tap_values.get(
                norm_tap, self.block.recorded.values.get(f"{self.block.start}ffn_norm.in")
            )
            return self.formulas.dataflow.second_norm_input(self) if recorded is None else recorded

        return self._break_cycle("second_norm_input", second_norm_input)

    def n1(self, x: Tensor) -> Tensor:
        return self.block.norm("attn_norm", x, self.formulas)

    def n2(self, x: Tensor) -> Tensor:
        return self.block.norm("ffn_norm", x, self.formulas)

    def _break_cycle(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Return `compute()`, or zeros during its own evaluation: several bugs together can wire a cycle."""
        if name in self.block.in_progress:
            return self.x * 0
        self.block.in_progress.add(name)
        try:
            return compute()
        finally:
            self.block.in_progress.discard(name)
