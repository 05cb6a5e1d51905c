"""The list of a run's interventions, in which each can be removed."""

from dataclasses import replace

from explorer.interventions import KINDS, CrossRunIntervention, parse_interventions
from explorer.tracing.capture import capture
from explorer.web.widgets.view_tools import ActiveInterventions
from tests.sample_models import ALL_KINDS_INTERVENTIONS

OTHERS = "rope.angles*shift*3~rope.angles*base*500~blocks.0.attn.v.1*zero~blocks.1.attn.z.2*patch"
OTHERS += "~blocks.1.resid_post@3*patch_mean~blocks.*.attn.pattern@9*mask*4"


def test_every_kind_of_change_is_listed_as_the_state_has_it(lms, rope_trace):
    operations = set()
    for text in (ALL_KINDS_INTERVENTIONS.format(other="layernorm"), OTHERS):
        edits = parse_interventions(text)
        interventions = [
            replace(edit, source=rope_trace) if isinstance(edit, CrossRunIntervention) else edit for edit in edits
        ]
        listed = ActiveInterventions.pack(capture(lms["rope"], rope_trace.token_ids[::-1], interventions))["edits"]
        assert [edit for edit, _words in listed] == text.split("~")
        assert len({words for _edit, words in listed}) == len(listed) and all(words for _edit, words in listed)
        operations |= {edit.operation for edit in edits}
    assert operations == set(KINDS)


def test_the_second_run_has_changes_of_its_own(lms, rope_trace):
    changed = capture(lms["rope"], rope_trace.token_ids, parse_interventions("blocks.0.attn.z.1*zero"))
    listed = ActiveInterventions.pack(rope_trace, changed)
    assert (listed["edits"], [edit for edit, _words in listed["b.edits"]]) == ([], ["blocks.0.attn.z.1*zero"])
    assert set(ActiveInterventions.pack(changed)) == {"edits"}
