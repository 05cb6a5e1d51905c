"""What a diagnosis found, as data: it can be written down and read where no module is."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FILE, MOST_BYTES = "diagnosis.json", 4 << 20


@dataclass(frozen=True)
class Cause:
    """Why a value differs: the reference's computation with a slip gives what the module has.

    Attributes:
        slips: names of the slips that explain it, each by itself and equally well; one, where it is clear.
        words: what each is.
        values: of each what is filled into its words.
    """

    slips: tuple[str, ...]
    words: tuple[str, ...]
    values: tuple[Mapping[str, str], ...] = ()

    @property
    def name(self) -> str:
        return " or ".join(self.slips)

    @property
    def is_clear(self) -> bool:
        """Whether one slip alone explains it."""
        return len(self.slips) == 1

    def __str__(self) -> str:
        return " / ".join(words.format(**values) for words, values in self.filled())

    def filled(self) -> list[tuple[str, Mapping[str, str]]]:
        """The words of each slip with what is filled into them."""
        return list(zip(self.words, self.values or ({},) * len(self.words), strict=True))


@dataclass(frozen=True)
class Difference:
    """A place where the module computes something else than the reference does of the same values.

    Attributes:
        tap: the first value that the slip changes; where nothing explains it, the first that is seen to differ.
        seen_at: the value at which it is seen.
        largest: of |module − reference| there.
        scale: the largest of the reference's numbers there.
        positions: of the tokens at which it is beyond what rounding explains.
        cause: what explains it; None where nothing that is known here does.
        also: the other places where the same is found.
        equal_to: of what nothing explains, the last value before it that the module has as the reference; "" for none.
        probed: whether it does not show in the run, but on shorter vectors that the norm was given, so many times
            (less than 1: on longer ones); 0 where it shows.
    """

    tap: str
    seen_at: str
    largest: float
    scale: float
    positions: tuple[int, ...]
    cause: Cause | None = None
    also: tuple[str, ...] = ()
    equal_to: str = ""
    probed: float = 0.0


@dataclass(frozen=True)
class Row:
    """A value on the way.

    Attributes:
        tap: its name.
        times: by how many times as much as rounding explains it differs from what the reference makes of the module's
            own values before it; NaN where it was not seen.
        largest: of these differences.
        apart: the largest difference from the reference's own run, as a share of its largest number; NaN likewise.
        by_position: `times` of each token.
    """

    tap: str
    times: float
    largest: float
    apart: float
    by_position: tuple[float, ...] = ()

    @property
    def is_seen(self) -> bool:
        return not math.isnan(self.largest) or bool(self.by_position)


@dataclass(frozen=True)
class Report:
    """Where a module parts from the reference with the same weights.

    Attributes:
        differences: in the order of the computation.
        rows: every value that was walked.
        logits_apart: the largest difference of the logits.
        scale: the largest logit of the reference.
        token_ids: that both read.
        seconds: that the diagnosis took.
        module: how it was called.
        spelling: whose names its weights have.
        notes: what else is to be known, in sentences.
    """

    differences: tuple[Difference, ...]
    rows: tuple[Row, ...]
    logits_apart: float
    scale: float
    token_ids: tuple[int, ...]
    seconds: float
    module: str = ""
    spelling: str = ""
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> str | None:
        """The first tap that differs."""
        return self.differences[0].tap if self.differences else None

    @property
    def cause(self) -> Cause | None:
        """What explains that."""
        return self.differences[0].cause if self.differences else None

    @property
    def is_equal(self) -> bool:
        """Whether the module computes what the reference does."""
        return not self.differences

    def save(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")


def load_report(folder: Path) -> Report | None:
    """The report in a folder; None where there is none that can be read."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return _report(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _report(values: Mapping[str, Any]) -> Report:
    def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

    differences = []
    for each in values["differences"]:
        cause = each["cause"] and Cause(**tuples(each["cause"]))
        differences.append(Difference(**tuples(each) | {"cause": cause}))
    rows = tuple(Row(**tuples(row)) for row in values["rows"])
    return Report(**tuples(values) | {"differences": tuple(differences), "rows": rows})
