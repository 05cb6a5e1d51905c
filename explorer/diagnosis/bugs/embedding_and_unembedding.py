"""Bugs before and after all blocks."""

import math
from collections.abc import Iterator

import torch

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.norm_pieces import NormPieces, identity
from explorer.translations import N_


def embedding_and_unembedding_bugs() -> Iterator[KnownBug]:
    """Yield the bugs before and after all blocks."""

    def scale_embeddings(factor):
        return lambda formulas, tap: formulas.replace(
            embed=lambda rows, table, config: formulas.embed(rows * factor(config), table, config)
        )

    def omit_positions(formulas, tap):
        return formulas.replace(embed=lambda rows, table, config: formulas.embed(rows, None, config))

    def shift_positions(formulas, tap):
        def embed(rows, table, config):
            return formulas.embed(rows, None if table is None else table.roll(-1, 0), config)

        return formulas.replace(embed=embed)

    def split_sines_and_cosines(formulas, tap):
        """Put all sines first, then all cosines, instead of alternating them."""

        def embed(rows, table, config):
            halves = None if table is None else torch.cat((table[:, 0::2], table[:, 1::2]), -1)
            return formulas.embed(rows, halves, config)

        return formulas.replace(embed=embed)

    def skip_final_norm(formulas, tap):
        return formulas.with_norm(
            "final_norm", NormPieces(identity, lambda y, gain, shift: y, root=lambda mean, eps: torch.ones_like(mean))
        )

    yield KnownBug(
        "embedding_scaled",
        N_("embeddings are multiplied by √D"),
        "",
        ("embed",),
        scale_embeddings(lambda c: math.sqrt(c.d_model)),
    )
    yield KnownBug("positions_left_out", N_("positions are not added"), "", ("embed",), omit_positions)
    yield KnownBug(
        "added_positions_off_by_one", N_("positions count from 1, not from 0"), "", ("embed",), shift_positions
    )
    text = N_("positions are all sines and then all cosines, which should alternate")
    yield KnownBug(
        "positions_in_halves",
        text,
        "",
        ("embed",),
        split_sines_and_cosines,
        lambda config: config.position == "sinusoidal",
    )
    yield KnownBug("final_norm_missing", N_("the final norm is missing"), "", ("final_norm",), skip_final_norm)
    for name, text, final_step in (
        ("logits_softmaxed", N_("a softmax makes probabilities of the logits"), lambda x: torch.softmax(x, -1)),
        ("logits_log_softmaxed", N_("a log-softmax is taken of the logits"), lambda x: torch.log_softmax(x, -1)),
    ):

        def change(formulas, tap, final_step=final_step):
            return formulas.replace(output=final_step)

        yield KnownBug(name, text, "", ("logits",), change)
