"""Join the weights of heads that are modules of their own, such as `heads.0.query`, into one weight for all heads."""

import re
from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor

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
