"""Map the names of another module's weights to ours, by tables, by shape and order, or head by head."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from explorer.errors import UserError
from explorer.translations import _
from model.pretrained.llama import Llama

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
LECTURE = {  # of A. Karpathy's lecture "Let's build GPT", whose heads are modules of their own
    "token_embedding_table": "token_embedding",
    "position_embedding_table": "position_embedding",
    "blocks.*.ln1": "blocks.*.attn_norm",
    "blocks.*.sa.heads.*.query": "blocks.*.attn.q_proj",
    "blocks.*.sa.heads.*.key": "blocks.*.attn.k_proj",
    "blocks.*.sa.heads.*.value": "blocks.*.attn.v_proj",
    "blocks.*.sa.proj": "blocks.*.attn.o_proj",
    "blocks.*.ln2": "blocks.*.ffn_norm",
    "blocks.*.ffwd.net.0": "blocks.*.ffn.up_proj",
    "blocks.*.ffwd.net.2": "blocks.*.ffn.down_proj",
    "ln_f": "final_norm",
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
NAME_TABLES = {"course": COURSE, "nanogpt": NANOGPT, "lecture": LECTURE, "llama": Llama.NAMES, "ours": OURS}


NUMBERED = re.compile(r"^(.*?)(\d+)\.(.*)$")
HINTS = {  # what a name's parts tell of a map where they are any of these; the order decides where none is
    "q_proj": ("q", "query", "queries", "wq", "w_q", "q_proj", "to_q"),
    "k_proj": ("k", "key", "keys", "wk", "w_k", "k_proj", "to_k"),
    "v_proj": ("v", "value", "values", "wv", "w_v", "v_proj", "to_v"),
    "o_proj": ("o", "out", "wo", "w_o", "o_proj", "out_proj", "output_proj", "proj", "to_out", "dense"),
    "gate_proj": ("gate", "gate_proj", "w1", "w_gate"),
    "up_proj": ("up", "up_proj", "w3", "w_up", "fc", "fc1", "c_fc"),
    "down_proj": ("down", "down_proj", "w2", "w_down", "fc2"),
}


def match_by_shape(
    stored: Mapping[str, Tensor], known_names: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Map names to our modules by shape and order; {} where the shapes are ambiguous.

    The model is assumed to be pre-norm: each layer has two norms, four maps of the attention, or one for queries,
    keys and values and one after it, and two or three of the feed-forward, in the order of registration.

    Args:
        known_names: name -> our modules, for those that are matched already.
    """
    known_names = dict(known_names or {})
    weights = {name: tuple(weight.shape) for name, weight in stored.items() if not name.endswith("bias")}
    layers: dict[str, dict[str, tuple[int, ...]]] = {}
    outside: dict[str, tuple[int, ...]] = {}
    for name, shape in weights.items():
        if numbered := NUMBERED.match(name):
            layers.setdefault(numbered[2], {})[name] = shape
        else:
            outside[name] = shape
    tables = [name for name, shape in outside.items() if len(shape) == 2 and name not in known_names]
    if not layers or not tables:
        return {}
    width = outside[tables[0]][1]
    matched = dict(known_names)
    for name, our_names in zip(tables, _embedding_names(tables, outside), strict=False):
        matched[name] = (our_names,)
    for name, shape in outside.items():
        if shape == (width,) and name not in known_names:
            matched[name] = ("final_norm",)
    if has_input_by_output_matrices(list(next(iter(layers.values())).values()), width):
        layers = {number: {name: shape[::-1] for name, shape in layer.items()} for number, layer in layers.items()}
    for number, layer in enumerate(sorted(layers, key=int)):
        numbered = _match_layer(
            {name: shape for name, shape in layers[layer].items() if name not in known_names}, width
        )
        matched |= {
            name: tuple(f"blocks.{number}.{our_name}" for our_name in our_names) for name, our_names in numbered.items()
        }
    matched |= {
        name: matched[owner]
        for name in stored
        if name.endswith("bias") and (owner := f"{name.removesuffix('bias')}weight") in matched
    }
    num_matched = len([our_names for name, our_names in matched.items() if not name.endswith("bias")])
    num_distinct = len({our_names for name, our_names in matched.items() if not name.endswith("bias")})
    return matched if set(matched) == set(stored) and num_matched == num_distinct else {}


def _embedding_names(names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return our names of the matrices outside of layers.

    The first is the embedding; the last of the same shape, if any, the unembedding; others are of positions.
    """
    same = [name for name in names if shapes[name] in (shapes[names[0]], shapes[names[0]][::-1])]
    our_names = ["token_embedding" if name == names[0] else "position_embedding" for name in names]
    if len(same) > 1:
        our_names[names.index(same[-1])] = "lm_head"
    return our_names


def has_input_by_output_matrices(shapes: Sequence[tuple[int, ...]], width: int) -> bool:
    """Return whether a layer's maps are (in, out), judged by the feed-forward's shapes."""
    wide = [shape for shape in shapes if len(shape) == 2 and shape[0] != shape[1] and 3 * width not in shape]
    into = [shape[0] == width for shape in wide]
    return bool(into) and (into[0] if len(into) == 2 else sum(into) > len(into) / 2)


def _match_layer(shapes: Mapping[str, tuple[int, ...]], width: int) -> dict[str, tuple[str, ...]]:
    norms = [name for name, shape in shapes.items() if shape == (width,)]
    maps = [name for name, shape in shapes.items() if len(shape) == 2]
    matched = {name: (our_name,) for name, our_name in zip(norms, ("attn_norm", "ffn_norm"), strict=False)}
    fused = [name for name in maps if shapes[name] == (3 * width, width)]
    if fused and sum(shapes[name] == (width, width) for name in maps) == 1:
        matched[fused[0]] = "attn.q_proj", "attn.k_proj", "attn.v_proj"
        matched |= {name: ("attn.o_proj",) for name in maps if shapes[name] == (width, width)}
    else:
        square = [name for name in maps if shapes[name][1] == width and shapes[name][0] <= width]
        matched |= _assign_in_order(square[:4], ("q_proj", "k_proj", "v_proj", "o_proj"), "attn")
    rest = [name for name in maps if name not in matched]
    down = [name for name in rest if shapes[name][0] == width]
    wide = [name for name in rest if name not in down]
    matched |= dict.fromkeys(down[:1], ("ffn.down_proj",))
    matched |= _assign_in_order(wide, ("gate_proj", "up_proj") if len(wide) == 2 else ("up_proj",), "ffn")
    return matched


def _assign_in_order(names: Sequence[str], our_names: Sequence[str], sublayer: str) -> dict[str, tuple[str, ...]]:
    """Assign our names to names by `HINTS` if these identify all of them, or all but one of several, else in order."""
    hinted = {
        our_name: name
        for name in names
        for our_name in our_names
        if set(name.lower().split(".")) & set(HINTS[our_name])
    }
    left, left_names = set(our_names) - set(hinted), set(names) - set(hinted.values())
    if len(our_names) > 2 and len(left) == len(left_names) == 1:
        hinted[left.pop()] = left_names.pop()
    if len(hinted) < len(our_names) or len(set(hinted.values())) < len(our_names):
        hinted = dict(zip(our_names, names, strict=False))
    return {name: (f"{sublayer}.{our_name}",) for our_name, name in hinted.items()}


HEAD_NUMBER = re.compile(r"(.*?\d+\.(?:.*?\.)?)(\d+)(\..+)")  # the second number of a name; the first is the layer's


def join_heads(stored: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, tuple[str, ...]]]:
    """Join matrices of a layer, (d, D) or (D, d), that differ by one number in their names, and their biases.

    Only equal shapes that make at most D dimensions together are heads' maps.

    Returns:
        The weights in their order, joined ones by a name with * in place of the number; and for each of these names
        the names that it joins, by head.
    """
    numbered: dict[str, dict[int, str]] = defaultdict(dict)
    for name in stored:
        if match := HEAD_NUMBER.fullmatch(name):
            numbered[f"{match[1]}*{match[3]}"][int(match[2])] = name
    heads = {joined: tuple(names[number] for number in sorted(names)) for joined, names in numbered.items()}
    maps = {joined for joined, names in heads.items() if _are_heads([stored[name].shape for name in names])}
    biases = {joined for joined in heads if joined.endswith(".bias") and f"{joined.removesuffix('bias')}weight" in maps}
    heads = {joined: names for joined, names in heads.items() if joined in maps | biases}
    joined_names = {name: joined for joined, names in heads.items() for name in names}
    weights = {}
    for name, weight in stored.items():
        joined = joined_names.get(name, name)
        if joined not in weights:
            weights[joined] = _join([stored[part] for part in heads[joined]]) if joined in heads else weight
    return weights, heads


def _are_heads(shapes: list[tuple[int, ...]]) -> bool:
    is_matrix = len(shapes) > 1 and len(set(shapes)) == 1 and len(shapes[0]) == 2
    return is_matrix and len(shapes) * min(shapes[0]) <= max(shapes[0])


def _join(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, 1 if parts[0].ndim == 2 and parts[0].shape[0] > parts[0].shape[1] else 0)


# Prefixes of torch.compile, parallel training and activation checkpointing, anywhere in a name, any number of times.
WRAPPERS = re.compile(
    r"(?:(?<=\.)|^)(?:_orig_mod|module|_checkpoint_wrapped_module|_fsdp_wrapped_module|_forward_module|_fpw_module)\."
)
NUMBER = r"(\d+|\*)"
Table = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class MatchedModule:
    """One of our modules as it is in another module: its weights, and their location.

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
        matched_modules: our module -> what it is in the other module.
    """

    name_table: str
    matched_modules: Mapping[str, MatchedModule]

    @property
    def num_layers(self) -> int:
        return 1 + max(
            (int(name.split(".")[1]) for name in self.matched_modules if name.startswith("blocks.")), default=-1
        )


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
        return WeightMatch(best, dict(_matched_modules(modules, head_paths, stored, matches[best])))
    if matched := match_by_shape(stored, matches["table"]):
        return WeightMatch("order", dict(_matched_modules(modules, head_paths, stored, matched)))
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


def _matched_modules(
    modules: Mapping[str, nn.Module],
    head_paths: Mapping[str, tuple[str, ...]],
    stored: Mapping[str, Tensor],
    matched: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[str, MatchedModule]]:
    """Yield each of our modules by its name.

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
                MatchedModule(
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
