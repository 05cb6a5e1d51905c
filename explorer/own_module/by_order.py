"""Which weight is which, by shape and order alone: for names that no table has."""

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


def by_order(
    stored: Mapping[str, Tensor], known: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Name there -> our modules; {} where the shapes leave it open.

    Read as a pre-norm model: in each layer two norms, four maps of the attention, or one for queries, keys and values
    and one after it, and two or three of the feed-forward, as they were registered.

    Args:
        known: what is said already.
    """
    known = dict(known or {})
    weights = {name: tuple(weight.shape) for name, weight in stored.items() if not name.endswith("bias")}
    layers: dict[str, dict[str, tuple[int, ...]]] = {}
    outside: dict[str, tuple[int, ...]] = {}
    for name, shape in weights.items():
        if found := NUMBERED.match(name):
            layers.setdefault(found[2], {})[name] = shape
        else:
            outside[name] = shape
    tables = [name for name, shape in outside.items() if len(shape) == 2 and name not in known]
    if not layers or not tables:
        return {}
    width = outside[tables[0]][1]
    placed = dict(known)
    for name, ours in zip(tables, _tables(tables, outside), strict=False):
        placed[name] = (ours,)
    for name, shape in outside.items():
        if shape == (width,) and name not in known:
            placed[name] = ("final_norm",)
    if turned(list(next(iter(layers.values())).values()), width):
        layers = {number: {name: shape[::-1] for name, shape in layer.items()} for number, layer in layers.items()}
    for number, layer in enumerate(sorted(layers, key=int)):
        found = _of_layer({name: shape for name, shape in layers[layer].items() if name not in known}, width)
        placed |= {name: tuple(f"blocks.{number}.{each}" for each in ours) for name, ours in found.items()}
    placed |= {
        name: placed[owner]
        for name in stored
        if name.endswith("bias") and (owner := f"{name.removesuffix('bias')}weight") in placed
    }
    twice = len([ours for name, ours in placed.items() if not name.endswith("bias")])
    distinct = len({ours for name, ours in placed.items() if not name.endswith("bias")})
    return placed if set(placed) == set(stored) and twice == distinct else {}


def _tables(names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Of the matrices outside of layers: the first is the embedding, the last, of the same shape, the unembedding."""
    same = [name for name in names if shapes[name] in (shapes[names[0]], shapes[names[0]][::-1])]
    ours = ["token_embedding" if name == names[0] else "position_embedding" for name in names]
    if len(same) > 1:
        ours[names.index(same[-1])] = "lm_head"
    return ours


def turned(shapes: Sequence[tuple[int, ...]], width: int) -> bool:
    """Whether a layer's maps are (in, out): so are the feed-forward's first and most of them."""
    wide = [shape for shape in shapes if len(shape) == 2 and shape[0] != shape[1] and 3 * width not in shape]
    into = [shape[0] == width for shape in wide]
    return bool(into) and (into[0] if len(into) == 2 else sum(into) > len(into) / 2)


def _of_layer(shapes: Mapping[str, tuple[int, ...]], width: int) -> dict[str, tuple[str, ...]]:
    norms = [name for name, shape in shapes.items() if shape == (width,)]
    maps = [name for name, shape in shapes.items() if len(shape) == 2]
    placed = {name: (ours,) for name, ours in zip(norms, ("attn_norm", "ffn_norm"), strict=False)}
    fused = [name for name in maps if shapes[name] == (3 * width, width)]
    if fused and sum(shapes[name] == (width, width) for name in maps) == 1:
        placed[fused[0]] = "attn.q_proj", "attn.k_proj", "attn.v_proj"
        placed |= {name: ("attn.o_proj",) for name in maps if shapes[name] == (width, width)}
    else:
        square = [name for name in maps if shapes[name][1] == width and shapes[name][0] <= width]
        placed |= _in_turn(square[:4], ("q_proj", "k_proj", "v_proj", "o_proj"), "attn")
    rest = [name for name in maps if name not in placed]
    down = [name for name in rest if shapes[name][0] == width]
    wide = [name for name in rest if name not in down]
    placed |= dict.fromkeys(down[:1], ("ffn.down_proj",))
    placed |= _in_turn(wide, ("gate_proj", "up_proj") if len(wide) == 2 else ("up_proj",), "ffn")
    return placed


def _in_turn(names: Sequence[str], ours: Sequence[str], sublayer: str) -> dict[str, tuple[str, ...]]:
    """By what the names' parts tell where they tell all of them apart, else by the order."""
    hinted = {each: name for name in names for each in ours if set(name.lower().split(".")) & set(HINTS[each])}
    if len(hinted) < len(ours) or len(set(hinted.values())) < len(ours):
        hinted = dict(zip(ours, names, strict=False))
    return {name: (f"{sublayer}.{each}",) for each, name in hinted.items()}
