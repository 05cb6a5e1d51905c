"""Slips that one scope alone can have: another sum, whose factors are fitted so that any sign, double or share is
found; another's weight; another ε."""

from collections.abc import Iterator, Mapping
from itertools import combinations

import torch
from torch import Tensor

from explorer.explain.notation import number
from explorer.language import N_
from explorer.own_module.formulas import NORMS, Formulas, linear
from explorer.own_module.off import Off
from explorer.own_module.slips.of_norms import changing
from explorer.own_module.slips.of_steps import with_linear
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Scope

MAX_TERMS = 3
NEAR = 1e-4  # a factor this near to a twelfth is one


def sum_slip(scope: Scope, tap: str, formulas: Formulas) -> Slip | None:
    """The slip that a value is another sum of its terms than it should be; None where it is none."""
    terms = scope.terms(tap, formulas)
    found = fit_sum(scope.seen[tap], terms)
    meant = fit_sum(scope.expected(tap, formulas), terms)
    if found is None or meant is None or found == meant:
        return None
    place = scope.place_of_factor(found)
    if place or len(found) == len(meant) == 1 and [*found] == [*meant]:
        factor = found[place] if place else next(iter(found.values()))
        name, words, values = "multiplied", N_("it is multiplied by {factor}"), (("factor", number(factor)),)
    else:
        name, words = "another_sum", N_("it is {found}, not {meant}")
        values = ("found", format_sum(found)), ("meant", format_sum(meant))

    def change(formulas: Formulas, _tap: str) -> Formulas:
        return scope.with_sum(formulas, tap, found)

    return Slip(name, words, place, (tap,), change, values=values)


def fit_sum(value: Tensor, terms: Mapping[str, Tensor]) -> dict[str, float] | None:
    """Factors of the fewest terms whose sum is the value but for rounding; None where there are none.

    Args:
        value: (T, D).
        terms: each (T, D).
    """
    if not torch.isfinite(value).all():
        return None
    wanted = value.double().flatten()[:, None]
    terms = {name: term for name, term in terms.items() if term.shape == value.shape and torch.isfinite(term).all()}
    for count in range(1, MAX_TERMS + 1):
        for names in combinations(terms, count):
            columns = torch.stack([terms[name].double().flatten() for name in names], -1)
            factors = torch.linalg.lstsq(columns, wanted).solution.flatten().tolist()
            found = {name: snap(factor) for name, factor in zip(names, factors, strict=True)}
            fitted = sum(factor * terms[name] for name, factor in found.items())
            if all(found.values()) and not Off.of(value, fitted).differs:
                return found
    return None


def snap(factor: float) -> float:
    nearest = round(factor * 12) / 12
    return nearest if abs(nearest - factor) < NEAR else factor


def format_sum(terms: Mapping[str, float]) -> str:
    text = ""
    for name, factor in terms.items():
        sign = "−" if factor < 0 else "+" if text else ""
        times = "" if abs(factor) == 1 else f"{number(abs(factor))} · "
        text += f" {sign} {times}{name}" if text else f"{sign}{times}{name}"
    return text


def neighbour_slips(scope: Scope, tap: str) -> Iterator[Slip]:
    """A map or norm that has another's weight: of all that have its shape in the same layer, and of its own kind in
    the others."""
    own = scope.owner(tap)
    weight = scope.weights.get(f"{own}.weight")
    if weight is None:
        return
    for name, other in scope.weights.items():
        stem, _dot, kind = name.rpartition(".")
        if kind != "weight" or stem == own or other.shape != weight.shape or not is_near(own, stem):
            continue
        words = N_("the weight of {other} is used, not its own")
        if own.endswith(NORMS):
            piece = own.split(".")[-1]

            def change(formulas, _tap, piece=piece, stem=stem):
                return formulas.with_norm(piece, formulas.norms[piece].but(weights=lambda _name: stem))

        elif tap == "embed":

            def change(formulas, _tap, stem=stem):
                return formulas.but(table=stem)

        else:
            change = with_linear(tap, lambda x, _name, weights, stem=stem: linear(x, stem, weights))
        yield Slip(
            "anothers_weight", words, "" if own.endswith(NORMS) else tap, (tap,), change, values=(("other", stem),)
        )


def is_near(one: str, other: str) -> bool:
    """Whether two modules are in the same layer, or the same in two layers, or both outside of layers."""
    parts, others = one.split("."), other.split(".")
    outside = {"final_norm", "token_embedding", "lm_head"}
    return (
        parts[0] == others[0] == "blocks"
        and (parts[1] == others[1] or parts[2:] == others[2:])
        or (bool({one, other} & outside))
    )


def epsilon_slip(scope: Scope, tap: str, formulas: Formulas) -> Slip | None:
    """The slip that a norm has another ε, worked out from what it makes of short vectors; None where it has none."""
    at = tap.removesuffix(f".{PROBE}")
    whole = f"{scope.start}{at}"
    x, y = (scope.seen_all.values.get(f"{whole}.{PROBE}.{end}") for end in ("in", "out"))
    gain, shift = scope.weights.get(f"{whole}.weight"), scope.weights.get(f"{whole}.bias")
    if x is None or gain is None or y.shape != x.shape:
        return None
    squares = formulas.norms[at].centre(x.double()).square().mean(-1)
    quotients = ((y.double() - (0 if shift is None else shift)) / gain).square().mean(-1)
    found = (squares / quotients - squares)[(quotients > 0.01) & (quotients < 0.99)]
    if not len(found) or not found.median() > 0:
        return None
    eps = float(f"{found.median().item():.2e}")
    change = changing({"epsilon": lambda _eps, _width: eps})
    return Slip(f"epsilon_{eps:.2e}", N_("ε is {epsilon}"), "", (at,), change, values=(("epsilon", number(eps)),))
