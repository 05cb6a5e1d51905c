"""Slips before and after all blocks."""

import math
from collections.abc import Iterator

import torch

from explorer.language import N_
from explorer.own_module.norms import Norm, as_it_is
from explorer.own_module.slips.slip import Slip


def end_slips() -> Iterator[Slip]:
    """Of what is before and after all blocks."""

    def scaled(factor):
        return lambda formulas, tap: formulas.but(
            embed=lambda rows, table, config: formulas.embed(rows * factor(config), table, config)
        )

    def without_positions(formulas, tap):
        return formulas.but(embed=lambda rows, table, config: formulas.embed(rows, None, config))

    def moved(formulas, tap):
        def embed(rows, table, config):
            return formulas.embed(rows, None if table is None else table.roll(-1, 0), config)

        return formulas.but(embed=embed)

    def in_halves(formulas, tap):
        """Sines first, then cosines, where they should alternate."""

        def embed(rows, table, config):
            halves = None if table is None else torch.cat((table[:, 0::2], table[:, 1::2]), -1)
            return formulas.embed(rows, halves, config)

        return formulas.but(embed=embed)

    def no_final_norm(formulas, tap):
        return formulas.with_norm(
            "final_norm", Norm(as_it_is, lambda y, gain, shift: y, root=lambda mean, eps: torch.ones_like(mean))
        )

    yield Slip(
        "embedding_scaled",
        N_("embeddings are multiplied by √D"),
        "",
        ("embed",),
        scaled(lambda c: math.sqrt(c.d_model)),
    )
    yield Slip("positions_left_out", N_("positions are not added"), "", ("embed",), without_positions)
    yield Slip("added_positions_off_by_one", N_("positions count from 1, not from 0"), "", ("embed",), moved)
    words = N_("positions are all sines and then all cosines, which should alternate")
    yield Slip("positions_in_halves", words, "", ("embed",), in_halves, lambda config: config.position == "sinusoidal")
    yield Slip("final_norm_missing", N_("the final norm is missing"), "", ("final_norm",), no_final_norm)
    for name, words, given in (
        ("logits_softmaxed", N_("a softmax makes probabilities of the logits"), lambda x: torch.softmax(x, -1)),
        ("logits_log_softmaxed", N_("a log-softmax is taken of the logits"), lambda x: torch.log_softmax(x, -1)),
    ):

        def change(formulas, tap, given=given):
            return formulas.but(given=given)

        yield Slip(name, words, "", ("logits",), change)
