"""Match weights to our modules by shape and order only, for names that are in no table."""

import re
from collections.abc import Mapping, Sequence

from torch import Tensor

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
    if is_transposed_layer(list(next(iter(layers.values())).values()), width):
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


def is_transposed_layer(shapes: Sequence[tuple[int, ...]], width: int) -> bool:
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
