"""Bugs in splitting, sharing and merging heads."""

from collections.abc import Iterator

from torch import Tensor

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.translations import N_


def split_without_transpose(x: Tensor, heads: int) -> Tensor:
    """Split heads by a view without the transposition."""
    return x.reshape(heads, len(x), -1)


def interleave_heads(x: Tensor, heads: int) -> Tensor:
    """Split (T, H d) into heads (H, T, d) with neighbouring dimensions in different heads."""
    return x.unflatten(-1, (-1, heads)).permute(2, 0, 1)


def undo_interleave(z: Tensor) -> Tensor:
    """Merge heads (H, T, d) that were interleaved into (T, H d)."""
    return z.permute(1, 2, 0).flatten(-2)


def merge_without_transpose(z: Tensor) -> Tensor:
    """Merge heads (H, T, d) into (T, H d) without swapping heads and tokens."""
    return z.reshape(z.shape[1], -1)


def tile_kv_heads(k: Tensor, heads: int) -> Tensor:
    """Repeat all key or value heads in turn, (G, T, d) -> (H, T, d), instead of each beside itself."""
    return k.repeat(heads // len(k), 1, 1)


VARIANTS = (  # name, words, place, changed formulas
    (
        "heads_without_transpose",
        N_("heads are split wrongly: a view without the transposition"),
        "q",
        {"split": split_without_transpose, "merge": merge_without_transpose},
    ),
    (
        "heads_split_only",
        N_("heads are split wrongly, by a view without the transposition, and joined rightly"),
        "q",
        {"split": split_without_transpose},
    ),
    (
        "heads_interleaved",
        N_("heads are split wrongly: each takes every H-th dimension"),
        "q",
        {"split": interleave_heads, "merge": undo_interleave},
    ),
    (
        "heads_interleaved_split",
        N_("heads are split wrongly, each takes every H-th dimension, and joined rightly"),
        "q",
        {"split": interleave_heads},
    ),
    (
        "heads_joined_wrongly",
        N_("heads are joined wrongly: a view without the transposition"),
        "z",
        {"merge": merge_without_transpose},
    ),
    (
        "heads_joined_interleaved",
        N_("heads are joined wrongly: dimension by dimension"),
        "z",
        {"merge": undo_interleave},
    ),
    (
        "shared_heads_tiled",
        N_("keys and values are shared by the wrong heads: every G-th, not neighbours"),
        "scores",
        {"repeat_kv": tile_kv_heads},
    ),
)


def head_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of splitting, sharing and merging heads."""
    for name, text, first_tap, changed in VARIANTS:

        def change(formulas, tap, changed=changed):
            return formulas.replace(**changed)

        yield KnownBug(name, text, f"attn.{first_tap}", ("attn.z",), change)
