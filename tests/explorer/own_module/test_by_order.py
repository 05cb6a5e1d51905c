"""Which weight is which, where names tell nothing."""

import pytest
import torch

from explorer.own_module.by_order import by_order

WIDTH, WIDE, WORDS = 8, 20, 30
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def stored(feed_forward: list[tuple[int, int]], is_turned: bool) -> dict[str, torch.Tensor]:
    """Of two layers whose names tell nothing, with maps (out, in) or (in, out)."""
    shapes = {"a": (WORDS, WIDTH)}
    for layer in range(2):
        maps = [(WIDTH, WIDTH)] * 4 + feed_forward
        shapes |= {f"b.{layer}.m{i}": shape[::-1] if is_turned else shape for i, shape in enumerate(maps)}
        shapes |= {f"b.{layer}.n{i}": (WIDTH,) for i in range(2)}
    shapes |= {"y": (WIDTH,), "z": (WORDS, WIDTH)}
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("is_turned", [False, True], ids=["(out, in)", "(in, out)"])
@pytest.mark.parametrize(
    ("feed_forward", "ours"),
    [
        ([(WIDE, WIDTH), (WIDTH, WIDE)], ["up_proj", "down_proj"]),
        ([(WIDE, WIDTH), (WIDE, WIDTH), (WIDTH, WIDE)], ["gate_proj", "up_proj", "down_proj"]),
    ],
    ids=["two maps", "three"],
)
def test_maps_are_known_by_their_shapes_and_order_whichever_way_round(feed_forward, ours, is_turned):
    found = by_order(stored(feed_forward, is_turned))
    assert (found["a"], found["y"], found["z"]) == (("token_embedding",), ("final_norm",), ("lm_head",))
    for layer in range(2):
        names = [f"attn.{each}" for each in ATTENTION] + [f"ffn.{each}" for each in ours]
        assert [found[f"b.{layer}.m{i}"] for i in range(len(names))] == [(f"blocks.{layer}.{n}",) for n in names]
        assert [found[f"b.{layer}.n{i}"] for i in range(2)] == [(f"blocks.{layer}.{n}_norm",) for n in ("attn", "ffn")]
