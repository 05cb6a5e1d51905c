"""The values of one block in the order they are computed."""

from collections.abc import Callable, Mapping

from torch import Tensor

from explorer.own_module.formulas import NORMS, Formulas, attention
from explorer.own_module.observing import Seen
from explorer.own_module.steps import FIRST_READ, PROBE, Scope
from explorer.own_module.wiring import ORDER, ROLES
from model.config import ModelConfig

SEEN_IN_BLOCK = {  # a value, or what it is around the sublayers -> names of what is seen of it, the best first
    "reads": ("*.attn.q_proj.in", "*.attn.in"),
    "attn.q": ("*.attn.q_proj.out",),
    "attn.k": ("*.attn.k_proj.out",),
    "attn.v": ("*.attn.v_proj.out",),
    "attn.z": ("*.attn.o_proj.in",),
    "attn.out": ("*.attn.o_proj.out", "*.attn.out"),
    "first": ("*.attn_norm.in",),
    "middle": ("*.ffn_norm.in",),
    "then": ("*.ffn.up_proj.in", "*.ffn.in"),
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


class Block(Scope):
    """One block; `entry` is what enters it."""

    def __init__(self, config: ModelConfig, seen: Seen, weights: Mapping[str, Tensor], layer: int, entry: Tensor):
        role = ROLES[config.norm_placement]
        self.leaves = role["leaves"]
        named = {each: role.get(each, each) for each in ORDER[config.norm_placement]}
        taps = tuple(tap for tap in named.values() if config.is_gated or tap != "ffn.gate_pre")
        super().__init__(config, seen, weights, f"blocks.{layer}.", taps)
        self.roles = {tap: each for each, tap in named.items() if each in role}
        self.layer, self.entry = layer, seen.values.get(f"blocks.{layer}.in", entry)
        following = [
            f"blocks.{layer + 1}.in",
            *(f"blocks.{layer + 1}.{name}" for name in FIRST_READ[config.norm_placement]),
        ]
        if layer == config.num_layers - 1:
            following = ["final_norm.in"] if config.norm_placement != "post" else ["lm_head.in"]
        self.see({tap: self._seen(each, tap) for each, tap in named.items()} | {role["leaves"]: ("*.out", *following)})

    def _seen(self, each: str, tap: str) -> tuple[str, ...]:
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
            gate = self.value("ffn.gate_pre", formulas) if self.config.is_gated else None
            return formulas.hidden(gate, self.value("ffn.up", formulas))
        return self.linear(tap, MAP_OF[tap], self.value(self.read_by(tap), formulas), formulas)

    def read_by(self, tap: str) -> str | None:
        read = READS.get(tap)
        return ROLES[self.config.norm_placement].get(read, read)

    def attention(self, formulas: Formulas) -> dict[str, Tensor]:
        q, k, v = (self.value(f"attn.{name}", formulas) for name in "qkv")
        return attention(formulas, self.config, q, k, v, self.config.rotates(self.layer))


class _Around:
    """What `Wiring` asks for, as the module has it, or as the formulas give it."""

    def __init__(self, block: Block, formulas: Formulas):
        self.block, self.formulas, self.x = block, formulas, block.entry

    @property
    def a(self) -> Tensor:
        return self.block.value("attn.out", self.formulas)

    @property
    def f(self) -> Tensor:
        return self._unless_asked("ffn.out", lambda: self.block.value("ffn.out", self.formulas))

    @property
    def m(self) -> Tensor:
        def middle():
            seen = self.block.seen_all.values.get(f"{self.block.start}ffn_norm.in")
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
