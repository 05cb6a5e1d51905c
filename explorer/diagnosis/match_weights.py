"""Map the names of another module's weights to ours.

A table has names without ".weight" and ".bias", with * for the layer number, and a second * for the number of a head
that is a module of its own (`join_heads`); a tuple stands for several maps stored in one, their rows one after another.
Names in no table are matched by shape and order (`match_by_shape`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from explorer.diagnosis.join_heads import join_heads
from explorer.diagnosis.match_by_shape import match_by_shape
from explorer.diagnosis.name_tables import NAME_TABLES
from explorer.errors import UserError
from explorer.translations import _

# Prefixes of torch.compile, parallel training and activation checkpointing, anywhere in a name, any number of times.
WRAPPERS = re.compile(
    r"(?:(?<=\.)|^)(?:_orig_mod|module|_checkpoint_wrapped_module|_fsdp_wrapped_module|_forward_module|_fpw_module)\."
)
NUMBER = r"(\d+|\*)"
Table = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class WeightLocation:
    """The location of one of our modules in another module.

    Attributes:
        weight, bias: its own; None where it has none.
        module: path of the module that it is; "" where its weight is not in a module of its own.
        within: path of the module that holds its weight.
        rows: of that module's outputs, those that are its own.
        heads: paths of the modules, one a head, whose weights are joined in it.
    """

    weight: Tensor
    bias: Tensor | None = None
    module: str = ""
    within: str = ""
    rows: slice = field(default_factory=lambda: slice(None))
    heads: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeightMatch:
    """All weights of another module by our names.

    Attributes:
        name_table: the table that has them: one of `NAME_TABLES`, "table" for the one passed in, "order" for none.
        locations: our module -> its location.
    """

    name_table: str
    locations: Mapping[str, WeightLocation]

    @property
    def num_layers(self) -> int:
        return 1 + max((int(name.split(".")[1]) for name in self.locations if name.startswith("blocks.")), default=-1)


def match_weights(module: nn.Module, names: Table | None = None) -> WeightMatch:
    """Match every weight of a module to one of our names.

    Args:
        names: a table for all or some of the weights; known tables supply the rest.

    Raises:
        UserError: some weight has no match; the message names it and says what to do.
    """
    stored, heads = join_heads(dict(module.named_parameters(remove_duplicate=False)))
    if not stored:
        raise UserError(_("The module has no weights: is it the model itself, with its layers as attributes?"))
    modules = dict(module.named_modules())
    head_paths = {_owner_path(joined): tuple(map(_owner_path, names)) for joined, names in heads.items()}
    modules |= {path: modules[paths[0]] for path, paths in head_paths.items()}
    stems = {name: _stem(name, modules) for name in stored}
    tables = {"table": dict(names or {})}
    tables |= {table_name: dict(table) | dict(names or {}) for table_name, table in NAME_TABLES.items()}
    matches = {table_name: dict(_match_stems(stems, table)) for table_name, table in tables.items()}
    best = max(matches, key=lambda table_name: len(matches[table_name]))  # the first of those that have as many
    if len(matches[best]) == len(stored):
        return WeightMatch(best, dict(_locations(modules, head_paths, stored, matches[best])))
    if matched := match_by_shape(stored, matches["table"]):
        return WeightMatch("order", dict(_locations(modules, head_paths, stored, matched)))
    unmatched = sorted(set(stored) - set(matches[best]))
    raise UserError(
        _(
            "{left} of the module’s {count} weights were not recognized, such as {names}: map them with names= "
            "(--names), as in {example}.",
            count=len(stored),
            left=len(unmatched),
            names=", ".join(unmatched[:3]),
            example='{"layers.*.attention.query": "blocks.*.attn.q_proj"}',
        )
    )


def _owner_path(name: str) -> str:
    return name.rpartition(".")[0]


def _stem(name: str, modules: Mapping[str, nn.Module] | None = None) -> str:
    """Return a weight's name as tables have it: without ".weight", ".bias", or a single map's parameter name."""
    path, _dot, leaf = name.rpartition(".")
    if leaf in ("weight", "bias") or (modules and path and is_single_map(modules[path])):
        name = path
    return WRAPPERS.sub("", name)


def is_single_map(module: nn.Module) -> bool:
    """Return whether a module has a single weight, perhaps with a bias, and no submodules."""
    names = [name for name, _weight in module.named_parameters()]
    return not list(module.children()) and len([name for name in names if "bias" not in name]) == 1


def _match_stems(stems: Mapping[str, str], table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name whose stem is in a table, with our names."""
    patterns = [
        (
            re.compile(re.escape(module_name).replace(r"\*", NUMBER)),
            (our_names,) if isinstance(our_names, str) else tuple(our_names),
        )
        for module_name, our_names in table.items()
    ]
    for name, stem in stems.items():
        for pattern, our_names in patterns:
            if numbered := pattern.fullmatch(stem):
                yield (
                    name,
                    tuple(
                        our_name.replace("*", numbered[1]) if "*" in our_name else our_name for our_name in our_names
                    ),
                )
                break


def _locations(
    modules: Mapping[str, nn.Module],
    head_paths: Mapping[str, tuple[str, ...]],
    stored: Mapping[str, Tensor],
    matched: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[str, WeightLocation]]:
    """Yield each of our modules with its location.

    Args:
        modules: by path; at the path of joined heads the first of them.
        head_paths: path of joined heads -> theirs.
    """
    weights = {name: our_names for name, our_names in matched.items() if not name.endswith("bias")}
    width = next(
        (stored[name].shape[-1] for name, our_names in weights.items() if our_names == ("token_embedding",)), 0
    )
    ups = (stored[name].shape for name, our_names in weights.items() if our_names == ("blocks.0.ffn.up_proj",))
    transposed = any(shape[0] == width != shape[-1] for shape in ups)
    for name, our_names in weights.items():
        path = _owner_path(name)
        heads, within = head_paths.get(path, ()), path.partition(".*")[0]
        owner = path if path and is_single_map(modules[path]) else ""
        bias = stored.get(f"{path}.bias") if owner or not path else None
        weight = stored[name].detach()
        if is_transposed(our_names, weight, modules.get(path), width, transposed):
            weight = weight.T
        heights = _row_counts(weight, len(our_names))
        first = 0
        for our_name, height in zip(our_names, heights, strict=True):
            rows = slice(first, first + height) if len(our_names) > 1 else slice(None)
            yield (
                our_name,
                WeightLocation(
                    weight[rows],
                    None if bias is None else bias.detach()[rows],
                    "" if heads else owner,
                    within,
                    rows,
                    heads,
                ),
            )
            first += height


def is_transposed(
    our_names: Sequence[str], weight: Tensor, owner: nn.Module | None, width: int, by_default: bool
) -> bool:
    """Return whether a map is stored as (in, out), x W, instead of (out, in), x Wᵀ.

    Where the shape does not tell, as the feed-forward's maps are (`by_default`).
    """
    if weight.ndim != 2 or isinstance(owner, nn.Linear | nn.Embedding) or "embedding" in our_names[0]:
        return False
    if type(owner).__name__ == "Conv1D":  # transformers' of GPT-2
        return True
    return weight.shape[0] == width != weight.shape[1] if our_names == ("lm_head",) else by_default


def _row_counts(weight: Tensor, count: int) -> list[int]:
    """Return the numbers of rows of several maps stored in one.

    All equal; or the queries' as many as there are columns, and the rest shared equally.
    """
    rows = weight.shape[0]
    if count == 1 or rows % count == 0 and (count != 3 or rows == 3 * weight.shape[1]):
        return [rows // count] * count
    shared, remainder = divmod(rows - weight.shape[1], count - 1)
    if remainder or shared <= 0:
        return [rows // count] * (count - 1) + [rows - rows // count * (count - 1)]
    return [weight.shape[1]] + [shared] * (count - 1)


def unwrapped_name(name: str) -> str:
    """Return the name of a weight without wrapper prefixes such as "_orig_mod."."""
    return WRAPPERS.sub("", name)


def infer_sizes(state: Mapping[str, Tensor]) -> dict[str, int]:
    """Infer sizes from the names and shapes of weights, by a known table, or by their order.

    Besides sizes by our names: "q_rows" and "k_rows", of the first layer's maps of queries and keys.
    """
    state, heads = join_heads(state)
    stems = {name: _stem(name) for name in state}
    matched = max((dict(_match_stems(stems, table)) for table in NAME_TABLES.values()), key=len)
    if len(matched) < len(state) / 2:
        matched = match_by_shape({name: weight for name, weight in state.items() if weight.ndim <= 2}) or matched
    locations = {
        our_name: (name, index, len(our_names))
        for name, our_names in matched.items()
        if not name.endswith("bias")
        for index, our_name in enumerate(our_names)
    }
    layers = [int(our_name.split(".")[1]) for our_name in locations if our_name.startswith("blocks.")]
    sizes = {"num_layers": 1 + max(layers, default=-1)}

    def shape(our_name: str) -> tuple[int, ...]:
        name, index, count = locations.get(our_name, ("", 0, 0))
        if not name:
            return (0, 0)
        weight = state[name]
        rows = _row_counts(weight, count)[index] if weight.ndim == 2 else weight.shape[0]
        return (rows, *weight.shape[1:])

    if "token_embedding" in locations:
        sizes["vocab_size"], sizes["d_model"] = shape("token_embedding")
    width = sizes.get("d_model", 0)
    sizes["context_length"] = shape("position_embedding")[0]
    ups, queries, keys = (shape(f"blocks.0.{name}") for name in ("ffn.up_proj", "attn.q_proj", "attn.k_proj"))
    sizes["d_ff"] = ups[1] if ups[0] == width != ups[1] else ups[0]
    sizes["q_rows"], sizes["k_rows"] = (map_[1] if map_[0] == width != map_[1] else map_[0] for map_ in (queries, keys))
    per_head = shape("blocks.0.attn.q_norm")[0]
    if per_head and per_head < sizes["q_rows"] and sizes["q_rows"] % per_head == 0:
        sizes["num_heads"] = sizes["q_rows"] // per_head
    sizes["num_heads"] = len(heads.get(locations.get("blocks.0.attn.q_proj", ("",))[0], ())) or sizes.get(
        "num_heads", 0
    )
    return {name: int(size) for name, size in sizes.items() if size}
