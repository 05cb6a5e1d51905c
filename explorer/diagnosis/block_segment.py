"""The values of one block in the order they are computed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor

from explorer.diagnosis.block_dataflow import DATAFLOWS, ROLES, VALUE_ORDER, BlockValues, Value
from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.record_values import SECOND_RUN, RecordedValues
from explorer.diagnosis.reference_formulas import NORMS, Formulas, attention_values, position_embedding_rows
from explorer.diagnosis.segments import FIRST_INPUTS, PROBE, ModelSegment
from model.config import ModelConfig

RECORDED_NAMES = {  # tap or role -> names under which it is recorded, the best first
    "block_input": (("*.in", "*.attn_norm.in"),),
    "attn_input": (("*.attn.q_proj.in", "*.attn.k_proj.in", "*.attn.v_proj.in"), "*.attn.in"),
    "attn.q": ("*.attn.q_proj.out",),
    "attn.k": ("*.attn.k_proj.out",),
    "attn.v": ("*.attn.v_proj.out",),
    "attn.z": ("*.attn.o_proj.in",),
    "attn.out": ("*.attn.o_proj.out", "*.attn.out"),
    "first_norm_input": ("*.attn_norm.in",),
    "second_norm_input": (("*.ffn_norm.in", f"*.ffn_norm.in{SECOND_RUN}"),),
    "ffn_input": (("*.ffn.up_proj.in", "*.ffn.gate_proj.in"), "*.ffn.in"),
    "ffn.gate_pre": ("*.ffn.gate_proj.out",),
    "ffn.up": ("*.ffn.up_proj.out",),
    "ffn.hidden": ("*.ffn.down_proj.in",),
    "ffn.out": ("*.ffn.down_proj.out", "*.ffn.out"),
}
MAP_BY_TAP = {
    "attn.q": "attn.q_proj",
    "attn.k": "attn.k_proj",
    "attn.v": "attn.v_proj",
    "attn.out": "attn.o_proj",
    "ffn.gate_pre": "ffn.gate_proj",
    "ffn.up": "ffn.up_proj",
    "ffn.out": "ffn.down_proj",
}
READS = {  # output of a map -> its input: a tap or a role
    "attn.q": "attn_input",
    "attn.k": "attn_input",
    "attn.v": "attn_input",
    "attn.out": "attn.z",
    "ffn.gate_pre": "ffn_input",
    "ffn.up": "ffn_input",
    "ffn.out": "ffn.hidden",
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
        """Return the names under which a value is recorded, including a norm's output where it is one."""
        return (*RECORDED_NAMES.get(value_name, ()), *([f"*.{tap}.out"] if tap in NORMS else []))

    def expected_value(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe(tap.removesuffix(f".{PROBE}"), formulas)
        if tap in self.roles:
            return getattr(formulas.dataflow, self.roles[tap])(_BlockValues(self, formulas))
        if tap in NORMS:  # of what a sublayer gives out
            read = formulas.dataflow.first_norm_input if tap == "attn_norm" else formulas.dataflow.second_norm_input
            return self.norm(tap, read(_BlockValues(self, formulas)), formulas)
        if tap == "attn.z":
            return self.attention(formulas)["merged"]
        if tap == "ffn.hidden":
            gate = self.used_value("ffn.gate_pre", formulas) if self.config.is_gated else None
            return formulas.hidden(gate, self.used_value("ffn.up", formulas))
        reads = formulas.linear_inputs.get(tap)
        x = self.value(self.input_tap(tap), formulas) if reads is None else reads(_BlockValues(self, formulas))
        return self.linear(tap, MAP_BY_TAP[tap], x, formulas)

    def used_value(self, tap: str, formulas: Formulas) -> Tensor:
        """Return a tap's value after the formulas' `uses`, which pass it on unchanged unless a bug replaces one."""
        value, use = self.value(tap, formulas), formulas.uses.get(tap)
        return value if use is None else use(value, lambda x: self.linear(tap, MAP_BY_TAP[tap], x, formulas))

    def recompute(self, entry: Tensor, formulas: Formulas, tap: str, start: str = "resid_pre") -> Tensor:
        """Return a tap computed by the formulas only, from the value `entry` at the tap `start`."""
        other = BlockSegment(self.config, RecordedValues(self.recorded.token_ids), self.weights, self.layer, entry)
        other.tap_values[start] = entry
        return other.value(tap, formulas)

    def owner(self, tap: str) -> str:
        role = {"attn_input": "attn_norm", "ffn_input": "ffn_norm"}.get(self.roles.get(tap, ""), "")
        name = MAP_BY_TAP.get(tap, role if tap in NORMS else "")
        return f"{self.start}{name}" if name else super().owner(tap)

    def map_name(self, tap: str) -> str:
        return MAP_BY_TAP.get(tap, "")

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        if tap in MAP_BY_TAP:
            return super().terms(tap, formulas)
        names = TERM_NAMES.get(self.roles.get(tap, ""), ())
        block_values = _BlockValues(self, formulas)
        return {name: TERM_VALUES[name](block_values) for name in names}

    def scaled_tap(self, terms: Mapping[str, float]) -> str:
        for tap in ("attn.out", "ffn.out"):
            output = self.recorded.values.get(f"{self.start}{tap.split('.')[0]}.out")  # what the whole sublayer gives
            if terms.get(tap, 1) == 1 or tap not in self.tap_values or output is None:
                continue
            if not Deviation.between(output, terms[tap] * self.tap_values[tap]).differs:
                return tap
        return ""

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        if tap in MAP_BY_TAP:
            return super().with_sum(formulas, tap, terms)

        def value(block_values: BlockValues) -> Tensor:
            return sum(factor * TERM_VALUES[name](block_values) for name, factor in terms.items())

        return formulas.replace(dataflow=replace(formulas.dataflow, **{self.roles[tap]: value}))

    def intermediate_values(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        if tap == "attn.z":
            return {name: value for name, value in self.attention(formulas).items() if name != "merged"}
        if tap != "ffn.hidden":
            return {}
        up = self.used_value("ffn.up", formulas)
        gate = self.used_value("ffn.gate_pre", formulas) if self.config.is_gated else up
        active = formulas.hidden.activation(gate)
        return {name: value[None] for name, value in (("gate_pre", gate), ("up", up), ("gate", active))}

    def input_tap(self, tap: str) -> str | None:
        read = READS.get(tap)
        return ROLES[self.config.norm_placement].get(read, read)

    def attention(self, formulas: Formulas) -> dict[str, Tensor]:
        q, k, v = (self.used_value(f"attn.{name}", formulas) for name in "qkv")
        return attention_values(formulas, self.config, q, k, v, self.config.has_rope(self.layer))


class _BlockValues:
    """The `BlockValues` of one block: the module's values where recorded, else those that the formulas compute."""

    def __init__(self, block: BlockSegment, formulas: Formulas):
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
        usual = self.formulas.replace(dataflow=DATAFLOWS[self.block.config.norm_placement])
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
