"""The values of one block in the order they are computed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor

from explorer.own_module.formulas import NORMS, Formulas, attention, position_rows
from explorer.own_module.observing import AGAIN, Seen
from explorer.own_module.off import Off
from explorer.own_module.steps import FIRST_READ, PROBE, Scope
from explorer.own_module.wiring import ORDER, ROLES, WIRINGS, Around, Value
from model.config import ModelConfig

SEEN_IN_BLOCK = {  # a value, or what it is around the sublayers -> names of what is seen of it, the best first
    "enters": (("*.in", "*.attn_norm.in"),),
    "reads": (("*.attn.q_proj.in", "*.attn.k_proj.in", "*.attn.v_proj.in"), "*.attn.in"),
    "attn.q": ("*.attn.q_proj.out",),
    "attn.k": ("*.attn.k_proj.out",),
    "attn.v": ("*.attn.v_proj.out",),
    "attn.z": ("*.attn.o_proj.in",),
    "attn.out": ("*.attn.o_proj.out", "*.attn.out"),
    "first": ("*.attn_norm.in",),
    "middle": (("*.ffn_norm.in", f"*.ffn_norm.in{AGAIN}"),),
    "then": (("*.ffn.up_proj.in", "*.ffn.gate_proj.in"), "*.ffn.in"),
    "ffn.gate_pre": ("*.ffn.gate_proj.out",),
    "ffn.up": ("*.ffn.up_proj.out",),
    "ffn.hidden": ("*.ffn.down_proj.in",),
    "ffn.out": ("*.ffn.down_proj.out", "*.ffn.out"),
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
READS = {  # of what a map gives: what it reads
    "attn.q": "reads",
    "attn.k": "reads",
    "attn.v": "reads",
    "attn.out": "attn.z",
    "ffn.gate_pre": "then",
    "ffn.up": "then",
    "ffn.out": "ffn.hidden",
}

TERM: dict[str, Value] = {  # what may be added up in the stream
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
TERMS = {
    "enters": ("previous resid_post", "positions"),
    "middle": ("resid_pre", "attn.out", "attn_norm", "resid_pre · attn.out"),
    "leaves": ("resid_mid", "ffn.out", "ffn_norm", "resid_pre", "attn.out", "resid_mid · ffn.out"),
}


class Block(Scope):
    """One block; `entry` is what enters it."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor], layer: int, entry: Tensor):
        role = ROLES[config.norm_placement]
        self.leaves = role["leaves"]
        named = {each: role.get(each, each) for each in ORDER[config.norm_placement]}
        taps = tuple(tap for tap in named.values() if config.is_gated or tap != "ffn.gate_pre")
        super().__init__(config, seen, weights, f"blocks.{layer}.", taps)
        self.roles = {tap: each for each, tap in named.items() if each in role}
        self.layer, self.before = layer, entry
        following = [
            f"blocks.{layer + 1}.in",
            *(f"blocks.{layer + 1}.{name}" for name in FIRST_READ[config.norm_placement]),
        ]
        if layer == config.num_layers - 1:
            following = ["final_norm.in"] if config.norm_placement != "post" else ["lm_head.in"]
        self.see({tap: self._seen(each, tap) for each, tap in named.items()} | {role["leaves"]: ("*.out", *following)})

    def _seen(self, each: str, tap: str) -> tuple[str | tuple[str, ...], ...]:
        """Names under which a value is seen: a norm's output, where it is one, too."""
        return (*SEEN_IN_BLOCK.get(each, ()), *([f"*.{tap}.out"] if tap in NORMS else []))

    def expected(self, tap: str, formulas: Formulas) -> Tensor:
        if tap.endswith(PROBE):
            return self.probe(tap.removesuffix(f".{PROBE}"), formulas)
        if tap in self.roles:
            return getattr(formulas.wiring, self.roles[tap])(_Around(self, formulas))
        if tap in NORMS:  # of what a sublayer gives out
            read = formulas.wiring.first if tap == "attn_norm" else formulas.wiring.middle
            return self.norm(tap, read(_Around(self, formulas)), formulas)
        if tap == "attn.z":
            return self.attention(formulas)["merged"]
        if tap == "ffn.hidden":
            gate = self.used("ffn.gate_pre", formulas) if self.config.is_gated else None
            return formulas.hidden(gate, self.used("ffn.up", formulas))
        reads = formulas.reads.get(tap)
        x = self.value(self.read_by(tap), formulas) if reads is None else reads(_Around(self, formulas))
        return self.linear(tap, MAP_OF[tap], x, formulas)

    def used(self, tap: str, formulas: Formulas) -> Tensor:
        """What is made of a map's output, as a rule itself."""
        value, use = self.value(tap, formulas), formulas.uses.get(tap)
        return value if use is None else use(value, lambda x: self.linear(tap, MAP_OF[tap], x, formulas))

    def alone(self, entry: Tensor, formulas: Formulas, tap: str, start: str = "resid_pre") -> Tensor:
        """What the formulas alone make, up to a tap, of another value in the place of an earlier one."""
        other = Block(self.config, Seen(self.seen_all.token_ids), self.weights, self.layer, entry)
        other.seen[start] = entry
        return other.value(tap, formulas)

    def owner(self, tap: str) -> str:
        role = {"reads": "attn_norm", "then": "ffn_norm"}.get(self.roles.get(tap, ""), "")
        name = MAP_OF.get(tap, role if tap in NORMS else "")
        return f"{self.start}{name}" if name else super().owner(tap)

    def map_of(self, tap: str) -> str:
        return MAP_OF.get(tap, "")

    def terms(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        if tap in MAP_OF:
            return super().terms(tap, formulas)
        names = TERMS.get(self.roles.get(tap, ""), ())
        around = _Around(self, formulas)
        return {name: TERM[name](around) for name in names}

    def place_of_factor(self, terms: Mapping[str, float]) -> str:
        for tap in ("attn.out", "ffn.out"):
            given = self.seen_all.values.get(f"{self.start}{tap.split('.')[0]}.out")  # what the whole sublayer gives
            if terms.get(tap, 1) == 1 or tap not in self.seen or given is None:
                continue
            if not Off.of(given, terms[tap] * self.seen[tap]).differs:
                return tap
        return ""

    def with_sum(self, formulas: Formulas, tap: str, terms: Mapping[str, float]) -> Formulas:
        if tap in MAP_OF:
            return super().with_sum(formulas, tap, terms)

        def value(around: Around) -> Tensor:
            return sum(factor * TERM[name](around) for name, factor in terms.items())

        return formulas.but(wiring=replace(formulas.wiring, **{self.roles[tap]: value}))

    def on_the_way(self, tap: str, formulas: Formulas) -> dict[str, Tensor]:
        if tap == "attn.z":
            return {name: value for name, value in self.attention(formulas).items() if name != "merged"}
        if tap != "ffn.hidden":
            return {}
        up = self.used("ffn.up", formulas)
        gate = self.used("ffn.gate_pre", formulas) if self.config.is_gated else up
        active = formulas.hidden.activation(gate)
        return {name: value[None] for name, value in (("gate_pre", gate), ("up", up), ("gate", active))}

    def read_by(self, tap: str) -> str | None:
        read = READS.get(tap)
        return ROLES[self.config.norm_placement].get(read, read)

    def attention(self, formulas: Formulas) -> dict[str, Tensor]:
        q, k, v = (self.used(f"attn.{name}", formulas) for name in "qkv")
        return attention(formulas, self.config, q, k, v, self.config.rotates(self.layer))


class _Around:
    """What `Wiring` asks for, as the module has it, or as the formulas give it."""

    def __init__(self, block: Block, formulas: Formulas):
        self.block, self.formulas, self.before = block, formulas, block.before

    @property
    def x(self) -> Tensor:
        if "enters" in self.block.roles.values():
            return self.block.value("resid_pre", self.formulas)
        return self.block.seen_all.values.get(f"{self.block.start}in", self.before)

    @property
    def a(self) -> Tensor:
        return self.block.used("attn.out", self.formulas)

    @property
    def f(self) -> Tensor:
        return self._unless_asked("ffn.out", lambda: self.block.used("ffn.out", self.formulas))

    @property
    def positions(self) -> Tensor:
        """The vectors that are added for positions, 0 where none are."""
        table = position_rows(self.block.config, self.block.weights)
        return self.before * 0 if table is None else table[: len(self.before)]

    def attend(self, x: Tensor) -> Tensor:
        return self.block.alone(x, self.formulas, "attn.out", self.block.read_by("attn.q"))

    def feed(self, x: Tensor) -> Tensor:
        return self.block.alone(x, self.formulas, "ffn.out", self.block.read_by("ffn.up"))

    def again(self, x: Tensor) -> Tensor:
        """What the whole block makes of a stream."""
        usual = self.formulas.but(wiring=WIRINGS[self.block.config.norm_placement])
        return self.block.alone(x, usual, self.block.leaves)

    def active(self, x: Tensor) -> Tensor:
        return self.formulas.hidden.activation(x)

    @property
    def m(self) -> Tensor:
        def middle():
            place = next((tap for tap, role in self.block.roles.items() if role == "middle"), None)
            seen = self.block.seen.get(place, self.block.seen_all.values.get(f"{self.block.start}ffn_norm.in"))
            return self.formulas.wiring.middle(self) if seen is None else seen

        return self._unless_asked("middle", middle)

    def n1(self, x: Tensor) -> Tensor:
        return self.block.norm("attn_norm", x, self.formulas)

    def n2(self, x: Tensor) -> Tensor:
        return self.block.norm("ffn_norm", x, self.formulas)

    def _unless_asked(self, name: str, find: Callable[[], Tensor]) -> Tensor:
        """Nothing where it is asked for on the way to itself: several slips together can wire a circle."""
        if name in self.block.asked:
            return self.x * 0
        self.block.asked.add(name)
        try:
            return find()
        finally:
            self.block.asked.discard(name)
