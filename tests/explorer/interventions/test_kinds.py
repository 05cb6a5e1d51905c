"""Kinds of interventions are discovered by their files."""

import numpy as np

import explorer.interventions
from explorer.explain.captured.formulas import recompute_with_interventions
from explorer.interventions import KINDS, parse_interventions
from explorer.interventions.intervention import Intervention
from explorer.tracing.capture import capture

NEGATION = """
from explorer.interventions.intervention import Intervention


class Negation(Intervention):
    operation, order = "negate", 75

    def changed_value(self, value):
        return -value

    def recompute(self, trace, value, sizes):
        return -value, sizes

    def describe_operation(self, config, text=None):
        return f"{self.tap} negated"


KINDS = (Negation,)
"""


def test_kinds_act_in_order():
    """First position shifts, then changes of how a value is computed, then changes of computed values."""
    kinds = "shift base norm mask drop mean patch patch_mean scale zero clamp remove add"
    assert list(KINDS) == kinds.split()


def test_every_kind_has_hooks_and_exact_effect():
    """Kinds without an exact effect change how a value is computed, which the value's own formula recomputes."""
    base = Intervention
    assert all(kind.hooks != base.hooks or kind.changed_value != base.changed_value for kind in KINDS.values())
    by_formula = {name for name, kind in KINDS.items() if kind.recompute == base.recompute}
    assert by_formula == {"shift", "base", "norm", "mask"}


def test_new_kind_is_one_file(tmp_path, monkeypatch, tiny_lm):
    (tmp_path / "negation.py").write_text(NEGATION, encoding="utf-8")
    monkeypatch.setattr(explorer.interventions, "__path__", [*explorer.interventions.__path__, str(tmp_path)])
    monkeypatch.setattr(explorer.interventions, "KINDS", kinds := explorer.interventions.discover_kinds())
    assert list(kinds)[-4:] == ["negate", "clamp", "remove", "add"]

    tap = "blocks.1.attn.z"
    edits = parse_interventions(f"{tap}*negate")
    assert edits[0].describe(tiny_lm.config) == f"{tap} negated"
    plain, trace = capture(tiny_lm, [1, 2, 3]), capture(tiny_lm, [1, 2, 3], edits)
    np.testing.assert_array_equal(trace[tap], -plain[tap])
    np.testing.assert_array_equal(recompute_with_interventions(trace, tap, plain[tap]), trace[tap])
