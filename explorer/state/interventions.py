"""Changes to a run, in words and in text."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from explorer.state.errors import UserError
from model.config import ModelConfig

MOST_EDITS = 16  # of one run
BETWEEN = "~"  # edits in a text
TAP = re.compile(r"[a-z][\w.]*[a-z]", re.ASCII)
PLACE = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<name>.+)")


@dataclass(frozen=True)
class Operation:
    """What an edit does to a value.

    Attributes:
        least, most: bounds of its amount; both 0 where it takes none.
        taps: the only ones it makes sense at; None: all. There it changes the whole value.
        whole: whether its amount is a whole number.
    """

    least: float = 0.0
    most: float = 0.0
    taps: tuple[str, ...] | None = None
    whole: bool = False


# In the order in which they act at one tap, whatever order they were given in: first where tokens stand.
OPERATIONS = {
    "shift": Operation(0, 4096, taps=("rope.angles", "position_embed"), whole=True),
    "base": Operation(1, 1e9, taps=("rope.angles",)),
    "scale": Operation(-100, 100),
    "zero": Operation(),
}


@dataclass(frozen=True)
class Edit:
    """A change to a captured value, which all that is computed from it follows.

    Written "blocks.2.attn.z.1*zero" or "rope.angles*base*500": the tap and index, the operation, the amount.

    Attributes:
        tap: the value's name.
        operation: "zero" and "scale" by the amount, of any value; "shift" lets all tokens stand the amount of positions
            later; "base" is θ of the rotary angles.
        amount: see there.
        index: the part that is changed, of a value a head its head, else of its last axis; None: all of it.

    Raises:
        UserError: it makes no sense of any model.
    """

    tap: str
    operation: str
    amount: float = 0.0
    index: int | None = None

    def __post_init__(self):
        if not TAP.fullmatch(self.tap):
            raise UserError(f"an edit changes a value with a name such as blocks.0.attn.z, got {self.tap[:80]!r}")
        operation = OPERATIONS.get(self.operation)
        if operation is None:
            raise UserError(f"an edit is one of {', '.join(OPERATIONS)}, got {self.operation[:80]!r}")
        if operation.taps and (self.tap not in operation.taps or self.index is not None):
            raise UserError(f"{self.operation!r} changes the whole of {' or '.join(operation.taps)}, got {self.place}")
        if not operation.least <= self.amount <= operation.most or (operation.whole and self.amount % 1):
            kind = "a whole number" if operation.whole else "a number"
            limits = f"from {operation.least:,.0f} to {operation.most:,.0f}"
            raise UserError(f"the amount of {self.operation!r} is {kind} {limits}, got {self.amount!r}")

    @classmethod
    def parse(cls, text: str) -> "Edit":
        """The edit that `str` wrote; UserError where it is none."""
        place, *operation = text.split("*")
        if not 1 <= len(operation) <= 2:
            raise UserError(f"an edit is written tap*operation or tap*operation*amount, got {text[:80]!r}")
        tap, _, index = place.rpartition(".")
        tap, index = (tap, int(index)) if re.fullmatch("[0-9]{1,9}", index) else (place, None)
        try:
            amount = float(operation[1]) if len(operation) > 1 else 0.0
        except ValueError:
            raise UserError(f"the amount of an edit is a number, got {operation[1][:80]!r}") from None
        return cls(tap, operation[0], amount, index)

    def __str__(self) -> str:
        amount = "" if OPERATIONS[self.operation] == Operation() else f"*{written(self.amount)}"
        return f"{self.place}*{self.operation}{amount}"

    @property
    def place(self) -> str:
        return self.tap if self.index is None else f"{self.tap}.{self.index}"

    def check(self, config: ModelConfig, taps: Collection[str]):
        """UserError if a model has not what it changes.

        Args:
            config: of the model.
            taps: names of the values it computes.
        """
        if self.tap not in taps:
            raise UserError(f"this model has no value {self.tap} that could be changed")
        kind, size = axis(self.tap, config)
        if self.index is not None and not 0 <= self.index < size:
            raise UserError(f"{self.tap} has {kind}s 0 to {size - 1}, got {self.index}")

    def words(self, config: ModelConfig) -> str:
        """What it does, as in "head 1 of layer 2 silenced"."""
        if self.operation == "shift":
            return f"positions shifted by {self.amount:,.0f}"
        if self.operation == "base":
            return f"θ = {self.amount:,.10g} instead of {config.rope_theta:,.10g}"
        if self == ROTATION_OFF:
            return "rotation off"
        layer, name = PLACE.fullmatch(self.tap).group("layer", "name")
        part = f"{axis(self.tap, config)[0]} {self.index}"
        if name in SUBLAYERS:
            what, done = SUBLAYERS[name] if self.index is None else part, "silenced"
        else:
            what, done = name if self.index is None else f"{part} of {name}", "set to 0"
        what += f" of layer {layer}" if layer else ""
        if self.amount == 0:  # of "zero" always
            return f"{what} {done}"
        return f"{what} × {self.amount:.10g}".replace("-", "−")


ROTATION_OFF = Edit("rope.angles", "zero")
SUBLAYERS = {"attn.z": "all heads", "ffn.hidden": "all neurons"}  # what does a sublayer's work, and speaks for itself
# last part of a tap's name -> what the parts of its value are, and how many there are
AXES = {
    **dict.fromkeys(("q", "q_norm", "q_rot", "scores", "pattern", "z"), ("head", lambda config: config.num_heads)),
    **dict.fromkeys(("k", "k_norm", "k_rot", "v"), ("kv head", lambda config: config.kv_heads)),
    **dict.fromkeys(("gate_pre", "gate", "up", "hidden"), ("neuron", lambda config: config.d_ff)),
    "angles": ("pair", lambda config: config.d_head // 2),
    "logits": ("token", lambda config: config.vocab_size),
}


def axis(tap: str, config: ModelConfig) -> tuple[str, int]:
    """What the index of an edit counts, as in ("head", 6)."""
    kind, size = AXES.get(tap.rpartition(".")[2], ("dimension", lambda config: config.d_model))
    return kind, size(config)


def parse_edits(edits: str | Sequence[str]) -> tuple[Edit, ...]:
    """Edits from their texts, or from one text joined by "~"; UserError where they are none, too many or repeated."""
    texts = edits.split(BETWEEN) if isinstance(edits, str) and edits else edits or ()
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise UserError("edits are texts")
    if len(texts) > MOST_EDITS:
        raise UserError(f"a run has at most {MOST_EDITS} edits, got {len(texts)}")
    parsed = tuple(map(Edit.parse, texts))
    if len({(edit.place, edit.operation) for edit in parsed}) < len(parsed):
        raise UserError("a run has each edit of a value once, got one twice")
    return parsed


def written(amount: float) -> str:
    """The shortest text that is read as the same number."""
    return str(int(amount)) if amount % 1 == 0 else repr(float(amount))
