"""Whose weight is whose: from the names of another's module to ours.

A table is written without ".weight" and ".bias", with * for the number of a layer; a tuple stands for maps that are one
there, their rows one after another. What a table cannot say `by_order` guesses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.by_order import by_order
from explorer.own_module.spellings import SPELLINGS
from explorer.state.errors import UserError

# Of torch.compile, of training in parallel, of activation checkpointing: anywhere in a name, as often as they like.
WRAPPERS = re.compile(
    r"(?:(?<=\.)|^)(?:_orig_mod|module|_checkpoint_wrapped_module|_fsdp_wrapped_module|_forward_module|_fpw_module)\."
)
NUMBER = r"(\d+)"
Table = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Part:
    """A module of ours in another's module.

    Attributes:
        weight, bias: its own; None where it has none.
        module: path of the module that it is, "" where its weight stands in none of its own.
        within: path of the module that its weight stands in.
        rows: which of that module's outputs are its.
    """

    weight: Tensor
    bias: Tensor | None = None
    module: str = ""
    within: str = ""
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
    stems = {name: _stem(name, module) for name in stored}
    tables = {"table": dict(names or {})}
    tables |= {known: dict(table) | dict(names or {}) for known, table in SPELLINGS.items()}
    found = {known: dict(_placed(stems, table)) for known, table in tables.items()}
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


def _stem(name: str, module: nn.Module | None = None) -> str:
    """What tables call a weight: without ".weight" and ".bias", or whatever the only weight of a module is called."""
    path, _dot, last = name.rpartition(".")
    if last in ("weight", "bias") or (module and path and is_one_map(module.get_submodule(path))):
        name = path
    return WRAPPERS.sub("", name)


def is_one_map(module: nn.Module) -> bool:
    """Whether a module has a single weight, perhaps with a bias, and no parts."""
    own = [name for name, _weight in module.named_parameters()]
    return not list(module.children()) and len([name for name in own if "bias" not in name]) == 1


def _placed(stems: Mapping[str, str], table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of each name whose stem a table has, what it is of ours."""
    patterns = [
        (re.compile(re.escape(theirs).replace(r"\*", NUMBER)), (ours,) if isinstance(ours, str) else tuple(ours))
        for theirs, ours in table.items()
    ]
    for name, stem in stems.items():
        for pattern, ours in patterns:
            if found := pattern.fullmatch(stem):
                yield name, tuple(each.replace("*", found[1]) if "*" in each else each for each in ours)
                break


def _parts(
    module: nn.Module, stored: Mapping[str, Tensor], placed: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Part]]:
    modules = dict(module.named_modules())
    weights = {name: ours for name, ours in placed.items() if not name.endswith("bias")}
    width = next((stored[name].shape[-1] for name, ours in weights.items() if ours == ("token_embedding",)), 0)
    ups = (stored[name].shape for name, ours in weights.items() if ours == ("blocks.0.ffn.up_proj",))
    turned = any(shape[0] == width != shape[-1] for shape in ups)
    for name, ours in weights.items():
        path, _dot, _last = name.rpartition(".")
        owner = path if path and is_one_map(modules[path]) else ""
        bias = stored.get(f"{path}.bias") if owner or not path else None
        weight = stored[name].detach()
        if is_turned(ours, weight, modules.get(path), width, turned):
            weight = weight.T
        heights = _heights(weight, len(ours))
        first = 0
        for each, height in zip(ours, heights, strict=True):
            rows = slice(first, first + height) if len(ours) > 1 else slice(None)
            yield each, Part(weight[rows], None if bias is None else bias.detach()[rows], owner, path, rows)
            first += height


def is_turned(ours: Sequence[str], weight: Tensor, owner: nn.Module | None, width: int, turned: bool) -> bool:
    """Whether a map is kept as (in, out), x W, and not as (out, in), x Wᵀ: where the shape does not tell, as the
    feed-forward's are."""
    if weight.ndim != 2 or isinstance(owner, nn.Linear | nn.Embedding) or "embedding" in ours[0]:
        return False
    if type(owner).__name__ == "Conv1D":  # transformers' of GPT-2
        return True
    return weight.shape[0] == width != weight.shape[1] if ours == ("lm_head",) else turned


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


def unwrapped(name: str) -> str:
    """The name of a weight without what wraps its module."""
    return WRAPPERS.sub("", name)


def sizes_in(state: Mapping[str, Tensor]) -> dict[str, int]:
    """What weights tell of sizes, by their names and shapes, as far as a spelling has them, or their order tells.

    Besides sizes by our names: "q_rows" and "k_rows", of the first layer's maps of queries and keys.
    """
    stems = {name: _stem(name) for name in state}
    found = max((dict(_placed(stems, table)) for table in SPELLINGS.values()), key=len)
    if len(found) < len(state) / 2:
        found = by_order({name: weight for name, weight in state.items() if weight.ndim <= 2}) or found
    places = {
        ours: (name, place, len(all_ours))
        for name, all_ours in found.items()
        if not name.endswith("bias")
        for place, ours in enumerate(all_ours)
    }
    layers = [int(ours.split(".")[1]) for ours in places if ours.startswith("blocks.")]
    sizes = {"num_layers": 1 + max(layers, default=-1)}

    def shape(ours: str) -> tuple[int, ...]:
        name, place, count = places.get(ours, ("", 0, 0))
        if not name:
            return (0, 0)
        weight = state[name]
        rows = _heights(weight, count)[place] if weight.ndim == 2 else weight.shape[0]
        return (rows, *weight.shape[1:])

    if "token_embedding" in places:
        sizes["vocab_size"], sizes["d_model"] = shape("token_embedding")
    width = sizes.get("d_model", 0)
    sizes["context_length"] = shape("position_embedding")[0]
    ups, queries, keys = (shape(f"blocks.0.{name}") for name in ("ffn.up_proj", "attn.q_proj", "attn.k_proj"))
    sizes["d_ff"] = ups[1] if ups[0] == width != ups[1] else ups[0]
    sizes["q_rows"], sizes["k_rows"] = (map_[1] if map_[0] == width != map_[1] else map_[0] for map_ in (queries, keys))
    per_head = shape("blocks.0.attn.q_norm")[0]
    if per_head and per_head < sizes["q_rows"] and sizes["q_rows"] % per_head == 0:
        sizes["num_heads"] = sizes["q_rows"] // per_head
    return {name: int(size) for name, size in sizes.items() if size}
