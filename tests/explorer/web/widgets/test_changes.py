"""Every change can be taken back: it is listed as the state has it, which the button takes it out of."""

from dataclasses import replace

from explorer.state.interventions import KINDS, FromOther, parse_edits
from explorer.tracing.capture import capture
from explorer.web.widgets.changes import Changes
from tests.specimens import KINDS_EDITS

OTHERS = "rope.angles*shift*3~rope.angles*base*500~blocks.0.attn.v.1*zero~blocks.1.attn.z.2*patch"
OTHERS += "~blocks.1.resid_post@3*patch_mean~blocks.*.attn.pattern@9*mask*4"


def test_every_kind_of_change_is_listed_as_the_state_has_it(lms, rope_trace):
    met = set()
    for text in (KINDS_EDITS.format(other="layernorm"), OTHERS):
        edits = parse_edits(text)
        made = [replace(edit, source=rope_trace) if isinstance(edit, FromOther) else edit for edit in edits]
        listed = Changes.pack(capture(lms["rope"], rope_trace.token_ids[::-1], made))["edits"]
        assert [edit for edit, _words in listed] == text.split("~")
        assert len({words for _edit, words in listed}) == len(listed) and all(words for _edit, words in listed)
        met |= {edit.operation for edit in edits}
    assert met == set(KINDS)


def test_the_second_run_has_changes_of_its_own(lms, rope_trace):
    changed = capture(lms["rope"], rope_trace.token_ids, parse_edits("blocks.0.attn.z.1*zero"))
    listed = Changes.pack(rope_trace, changed)
    assert (listed["edits"], [edit for edit, _words in listed["b.edits"]]) == ([], ["blocks.0.attn.z.1*zero"])
    assert set(Changes.pack(changed)) == {"edits"}
