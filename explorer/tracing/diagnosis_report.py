"""Results of a diagnosis as data, which can be saved and read without the module."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE, MAX_BYTES = "diagnosis.json", 4 << 20


@dataclass(frozen=True)
class BugExplanation:
    """An explanation of a difference: the reference with a common bug computes what the module computes.

    Attributes:
        slips: names of the bugs that explain it, each alone and equally well; one if the explanation is clear.
        words: a description of each.
        values: for each the values of the fields in its description.
    """

    slips: tuple[str, ...]
    words: tuple[str, ...]
    values: tuple[Mapping[str, str], ...] = ()

    @property
    def name(self) -> str:
        return " or ".join(self.slips)

    @property
    def is_clear(self) -> bool:
        """True if exactly one bug explains the difference."""
        return len(self.slips) == 1

    def __str__(self) -> str:
        return " / ".join(words.format(**values) for words, values in self.templates_with_values())

    def templates_with_values(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return the description of each bug with the values of its fields."""
        return list(zip(self.words, self.values or ({},) * len(self.words), strict=True))


@dataclass(frozen=True)
class Difference:
    """A value at which the module computes something else than the reference does from the same inputs.

    Attributes:
        tap: the first value that the bug changes; without an explanation, the first value at which a difference is
            seen.
        seen_at: the value at which the difference is seen.
        largest: max |module − reference| there.
        scale: the largest of the reference's numbers there.
        positions: of the tokens at which the difference exceeds rounding.
        cause: its explanation; None if no known bug explains it.
        also: other values with the same explanation.
        equal_to: if nothing explains it, the last value before it that agrees with the reference; "" for none.
        probed: if the difference appears only on rescaled inputs of the norm, the factor by which they are shorter
            (less than 1: longer); 0 if it appears in the run.
    """

    tap: str
    seen_at: str
    largest: float
    scale: float
    positions: tuple[int, ...]
    cause: BugExplanation | None = None
    also: tuple[str, ...] = ()
    equal_to: str = ""
    probed: float = 0.0


@dataclass(frozen=True)
class TapComparison:
    """The comparison of one value with the reference.

    Attributes:
        tap: its name.
        times: largest ratio of the difference to the rounding tolerance, where the reference computes from the
            module's own earlier values; NaN if the value was not recorded.
        largest: the largest of these differences.
        apart: largest difference from the reference's own run, as a share of its largest number; NaN likewise.
        by_position: `times` of each token.
    """

    tap: str
    times: float
    largest: float
    apart: float
    by_position: tuple[float, ...] = ()

    @property
    def is_recorded(self) -> bool:
        return not math.isnan(self.largest) or bool(self.by_position)


@dataclass(frozen=True)
class DiagnosisReport:
    """The differences between a module and the reference with the same weights.

    Attributes:
        differences: in the order of the computation.
        rows: every value that was compared.
        logits_apart: the largest difference of the logits.
        scale: the largest logit of the reference.
        token_ids: the input of both.
        seconds: duration of the diagnosis.
        module: name of the module.
        spelling: name of the table of its weights' names.
        notes: further notes, in sentences.
    """

    differences: tuple[Difference, ...]
    rows: tuple[TapComparison, ...]
    logits_apart: float
    scale: float
    token_ids: tuple[int, ...]
    seconds: float
    module: str = ""
    spelling: str = ""
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> str | None:
        """The first tap that differs; None if none does."""
        return self.differences[0].tap if self.differences else None

    @property
    def cause(self) -> BugExplanation | None:
        """The explanation of the first difference, if there is one."""
        return self.differences[0].cause if self.differences else None

    @property
    def is_equal(self) -> bool:
        """True if the module computes the same as the reference."""
        return not self.differences

    def save(self, folder: Path) -> None:
        """Save the report as JSON into a folder."""
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")


def load_diagnosis_report(folder: Path) -> DiagnosisReport | None:
    """Return the report in a folder; None if there is none that can be read."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        return _report(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _report(values: Mapping[str, Any]) -> DiagnosisReport:
    def lists_to_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

    differences = []
    for entry in values["differences"]:
        cause = entry["cause"] and BugExplanation(**lists_to_tuples(entry["cause"]))
        differences.append(Difference(**lists_to_tuples(entry) | {"cause": cause}))
    rows = tuple(TapComparison(**lists_to_tuples(row)) for row in values["rows"])
    return DiagnosisReport(**lists_to_tuples(values) | {"differences": tuple(differences), "rows": rows})
