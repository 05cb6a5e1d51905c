"""Whose weight is whose: from the names of another's module to ours.

A table is written without ".weight" and ".bias", with * for the number of a layer; a tuple stands for maps that are one
there, their rows one after another. What a table cannot say `by_order` guesses.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.by_order import by_order
from explorer.state.errors import UserError
from model.pretrained.llama import NAMES as LLAMA

COURSE = {
    "token_embeddings": "token_embedding",
    "layers.*.ln1": "blocks.*.attn_norm",
    "layers.*.attn.q_proj": "blocks.*.attn.q_proj",
    "layers.*.attn.k_proj": "blocks.*.attn.k_proj",
    "layers.*.attn.v_proj": "blocks.*.attn.v_proj",
    "layers.*.attn.output_proj": "blocks.*.attn.o_proj",
    "layers.*.ln2": "blocks.*.ffn_norm",
    "layers.*.ffn.w1": "blocks.*.ffn.gate_proj",
    "layers.*.ffn.w3": "blocks.*.ffn.up_proj",
    "layers.*.ffn.w2": "blocks.*.ffn.down_proj",
    "ln_final": "final_norm",
    "lm_head": "lm_head",
}
NANOGPT = {
    "transformer.wte": "token_embedding",
    "transformer.wpe": "position_embedding",
    "transformer.h.*.ln_1": "blocks.*.attn_norm",
    "transformer.h.*.attn.c_attn": ("blocks.*.attn.q_proj", "blocks.*.attn.k_proj", "blocks.*.attn.v_proj"),
    "transformer.h.*.attn.c_proj": "blocks.*.attn.o_proj",
    "transformer.h.*.ln_2": "blocks.*.ffn_norm",
    "transformer.h.*.mlp.c_fc": "blocks.*.ffn.up_proj",
    "transformer.h.*.mlp.c_proj": "blocks.*.ffn.down_proj",
    "transformer.ln_f": "final_norm",
    "lm_head": "lm_head",
}
OURS = {
    name: name
    for name in (
        *("token_embedding", "position_embedding", "final_norm", "lm_head", "blocks.*.attn_norm", "blocks.*.ffn_norm"),
        *(f"blocks.*.attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")),
        *(f"blocks.*.ffn.{name}" for name in ("gate_proj", "up_proj", "down_proj")),
    )
}
SPELLINGS = {"course": COURSE, "nanogpt": NANOGPT, "llama": LLAMA, "ours": OURS}
WRAPPERS = re.compile(r"^(?:_orig_mod\.|module\.)+")  # of torch.compile and of data-parallel training
NUMBER = r"(\d+)"
Table = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Part:
    """A module of ours in another's module.

    Attributes:
        weight, bias: its own; None where it has none.
        module: path of the module that it is, "" where its weight stands in none of its own.
        rows: which of that module's outputs are its.
    """

    weight: Tensor
    bias: Tensor | None = None
    module: str = ""
    rows: slice = field(default_factory=lambda: slice(None))


@dataclass(frozen=True)
class Match:
    """All of another's weights by our names.

    Attributes:
        spelling: which table had them: one of `SPELLINGS`, "table" for the one that was given, "order" for none.
        parts: our module -> what it is there.
    """

    spelling: str
    parts: Mapping[str, Part]

    @property
    def num_layers(self) -> int:
        return 1 + max((int(name.split(".")[1]) for name in self.parts if name.startswith("blocks.")), default=-1)


def match(module: nn.Module, names: Table | None = None) -> Match:
    """Every weight of the module by our name.

    Args:
        names: a table as above, for all or for some: what it does not say the known spellings do.

    Raises:
        UserError: some weight has no place; the message names it and says what to do.
    """
    stored = dict(module.named_parameters(remove_duplicate=False))
    if not stored:
        raise UserError(_("The module has no weights: is it the model itself, with its layers as attributes?"))
    tables = {"table": dict(names or {})}
    tables |= {known: dict(table) | dict(names or {}) for known, table in SPELLINGS.items()}
    found = {known: dict(_placed(stored, table)) for known, table in tables.items()}
    spelling = max(found, key=lambda known: len(found[known]))  # the first of those that have as many
    if len(found[spelling]) == len(stored):
        return Match(spelling, dict(_parts(module, stored, found[spelling])))
    if placed := by_order(stored, found["table"]):
        return Match("order", dict(_parts(module, stored, placed)))
    left = sorted(set(stored) - set(found[spelling]))
    raise UserError(
        _(
            "Of the module’s {count} weights {left} have no place in the reference, such as {names}: say by names= "
            "(--names) what each is, as in {example}.",
            count=len(stored),
            left=len(left),
            names=", ".join(left[:3]),
            example='{"layers.*.attention.query": "blocks.*.attn.q_proj"}',
        )
    )


def _placed(stored: Mapping[str, Tensor], table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of each name that a table has, what it is of ours."""
    patterns = [
        (re.compile(re.escape(theirs).replace(r"\*", NUMBER)), (ours,) if isinstance(ours, str) else tuple(ours))
        for theirs, ours in table.items()
    ]
    for name in stored:
        stem = WRAPPERS.sub("", name)
        stem = stem.removesuffix(".weight") if stem.endswith(".weight") else stem.removesuffix(".bias")
        for pattern, ours in patterns:
            if found := pattern.fullmatch(stem):
                yield name, tuple(each.replace("*", found[1]) if "*" in each else each for each in ours)
                break


def _parts(
    module: nn.Module, stored: Mapping[str, Tensor], placed: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Part]]:
    modules = dict(module.named_modules())
    weights = {name: ours for name, ours in placed.items() if not name.endswith("bias")}
    for name, ours in weights.items():
        path, _dot, last = name.rpartition(".")
        owner = path if last == "weight" else ""
        bias = stored.get(f"{path}.bias") if owner or not path else None
        weight = stored[name].detach()
        if type(modules.get(path)).__name__ == "Conv1D":  # transformers' of GPT-2: (in, out)
            weight = weight.T
        heights = _heights(weight, len(ours))
        first = 0
        for each, height in zip(ours, heights, strict=True):
            rows = slice(first, first + height) if len(ours) > 1 else slice(None)
            yield each, Part(weight[rows], None if bias is None else bias.detach()[rows], owner, rows)
            first += height


def _heights(weight: Tensor, count: int) -> list[int]:
    """How many rows each of several maps in one has: all as many, or of queries as many as there are columns, and the
    rest shared."""
    rows = weight.shape[0]
    if count == 1 or rows % count == 0 and (count != 3 or rows == 3 * weight.shape[1]):
        return [rows // count] * count
    shared, left = divmod(rows - weight.shape[1], count - 1)
    if left or shared <= 0:
        return [rows // count] * (count - 1) + [rows - rows // count * (count - 1)]
    return [weight.shape[1]] + [shared] * (count - 1)


def sizes_in(state: Mapping[str, Tensor]) -> dict[str, int]:
    """What weights tell of sizes, by their names and shapes, as far as a spelling has them."""
    found = max((dict(_placed(state, table)) for table in SPELLINGS.values()), key=len)
    shapes = {each: tuple(state[name].shape) for name, ours in found.items() for each in ours if "bias" not in name}
    sizes = {
        "num_layers": 1 + max((int(name.split(".")[1]) for name in shapes if name.startswith("blocks.")), default=-1)
    }
    if "token_embedding" in shapes:
        sizes["vocab_size"], sizes["d_model"] = shapes["token_embedding"]
    if "position_embedding" in shapes:
        sizes["context_length"] = shapes["position_embedding"][0]
    if "blocks.0.ffn.up_proj" in shapes:
        sizes["d_ff"] = shapes["blocks.0.ffn.up_proj"][0]
    return {name: size for name, size in sizes.items() if size}
