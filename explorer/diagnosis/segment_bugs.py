"""Bugs that only one segment can have: another sum, another module's weight, another ε.

The factors of a sum are fitted, so that any sign, multiple or fraction is recognised.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

import torch
from torch import Tensor

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.bugs.norms import change_norm_pieces
from explorer.diagnosis.bugs.steps import replace_linear
from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.reference_formulas import NORMS, Formulas, linear
from explorer.diagnosis.segments import PROBE, ModelSegment
from explorer.explain.notation import format_number
from explorer.translations import N_

MAX_TERMS = 3
SNAP_TOLERANCE = 1e-4  # a factor this near to a twelfth is one


def sum_bug(scope: ModelSegment, tap: str, formulas: Formulas) -> KnownBug | None:
    """Return the bug that a value is another sum of its terms than expected; None where it is not."""
    terms = scope.terms(tap, formulas)
    fitted = fit_sum(scope.tap_values[tap], terms)
    expected = fit_sum(scope.expected_value(tap, formulas), terms)
    if fitted is None or expected is None or fitted == expected:
        return None
    scaled_tap = scope.scaled_tap(fitted)
    if scaled_tap or len(fitted) == len(expected) == 1 and [*fitted] == [*expected]:
        factor = fitted[scaled_tap] if scaled_tap else next(iter(fitted.values()))
        name, text, values = "multiplied", N_("it is multiplied by {factor}"), (("factor", format_number(factor)),)
    else:
        name, text = "another_sum", N_("it is {found}, not {meant}")
        values = ("found", format_sum(fitted)), ("meant", format_sum(expected))

    def change(formulas: Formulas, _tap: str) -> Formulas:
        return scope.with_sum(formulas, tap, fitted)

    return KnownBug(name, text, scaled_tap, (tap,), change, values=values)


def fit_sum(value: Tensor, terms: Mapping[str, Tensor]) -> dict[str, float] | None:
    """Return the factors of the fewest terms whose sum is the value within rounding; None where there are none.

    Args:
        value: (T, D).
        terms: each (T, D).
    """
    if not torch.isfinite(value).all():
        return None
    target = value.double().flatten()[:, None]
    terms = {name: term for name, term in terms.items() if term.shape == value.shape and torch.isfinite(term).all()}
    for count in range(1, MAX_TERMS + 1):
        for names in combinations(terms, count):
            columns = torch.stack([terms[name].double().flatten() for name in names], -1)
            factors = torch.linalg.lstsq(columns, target).solution.flatten().tolist()
            terms_to_factors = {name: snap_to_twelfth(factor) for name, factor in zip(names, factors, strict=True)}
            fitted = sum(factor * terms[name] for name, factor in terms_to_factors.items())
            if all(terms_to_factors.values()) and not Deviation.between(value, fitted).differs:
                return terms_to_factors
    return None


def snap_to_twelfth(factor: float) -> float:
    """Return the nearest twelfth if a factor is close to it, else the factor."""
    nearest = round(factor * 12) / 12
    return nearest if abs(nearest - factor) < SNAP_TOLERANCE else factor


def format_sum(terms: Mapping[str, float]) -> str:
    """Format a sum of named terms with their factors."""
    text = ""
    for name, factor in terms.items():
        sign = "−" if factor < 0 else "+" if text else ""
        times = "" if abs(factor) == 1 else f"{format_number(abs(factor))} · "
        text += f" {sign} {times}{name}" if text else f"{sign}{times}{name}"
    return text


def other_weight_bugs(scope: ModelSegment, tap: str) -> Iterator[KnownBug]:
    """Yield the bugs that a map or norm uses another module's weight.

    Candidates are weights of the same shape in the same layer, and of the same kind in other layers.
    """
    own_name = scope.owner(tap)
    weight = scope.weights.get(f"{own_name}.weight")
    if weight is None:
        return
    for name, other in scope.weights.items():
        stem, _dot, kind = name.rpartition(".")
        if kind != "weight" or stem == own_name or other.shape != weight.shape or not is_related_module(own_name, stem):
            continue
        text = N_("the weight of {other} is used, not its own")
        if own_name.endswith(NORMS):
            piece = own_name.split(".")[-1]

            def change(formulas, _tap, piece=piece, stem=stem):
                return formulas.with_norm(piece, formulas.norms[piece].replace(weights=lambda _name: stem))

        elif tap == "embed":

            def change(formulas, _tap, stem=stem):
                return formulas.replace(table=stem)

        else:
            change = replace_linear(tap, lambda x, _name, weights, stem=stem: linear(x, stem, weights))
        yield KnownBug(
            "anothers_weight", text, "" if own_name.endswith(NORMS) else tap, (tap,), change, values=(("other", stem),)
        )


def is_related_module(first: str, second: str) -> bool:
    """Return whether two modules share a layer or a name within their layers, or one is outside the layers."""
    first_parts, second_parts = first.split("."), second.split(".")
    outside = {"final_norm", "token_embedding", "lm_head"}
    return (
        first_parts[0] == second_parts[0] == "blocks"
        and (first_parts[1] == second_parts[1] or first_parts[2:] == second_parts[2:])
        or (bool({first, second} & outside))
    )


def epsilon_bug(scope: ModelSegment, tap: str, formulas: Formulas) -> KnownBug | None:
    """Return the bug that a norm has another ε, estimated from its probes; None where there is none."""
    norm_tap = tap.removesuffix(f".{PROBE}")
    norm_name = f"{scope.start}{norm_tap}"
    x, y = (scope.recorded.values.get(f"{norm_name}.{PROBE}.{end}") for end in ("in", "out"))
    gain, shift = scope.weights.get(f"{norm_name}.weight"), scope.weights.get(f"{norm_name}.bias")
    if x is None or gain is None or y.shape != x.shape:
        return None
    squares = formulas.norms[norm_tap].centre(x.double()).square().mean(-1)
    quotients = ((y.double() - (0 if shift is None else shift)) / gain).square().mean(-1)
    epsilons = (squares / quotients - squares)[(quotients > 0.01) & (quotients < 0.99)]
    if not len(epsilons) or not epsilons.median() > 0:
        return None
    eps = float(f"{epsilons.median().item():.2e}")
    change = change_norm_pieces({"epsilon": lambda _eps, _width: eps})
    return KnownBug(
        f"epsilon_{eps:.2e}", N_("ε is {epsilon}"), "", (norm_tap,), change, values=(("epsilon", format_number(eps)),)
    )
