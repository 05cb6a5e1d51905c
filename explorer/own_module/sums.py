"""What a value of the stream is the sum of: factors are fitted, so that any sign, double or share is found."""

from collections.abc import Mapping
from itertools import combinations

import torch
from torch import Tensor

from explorer.explain.notation import number
from explorer.language import N_
from explorer.own_module.formulas import Formulas
from explorer.own_module.off import Off
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import Scope

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
