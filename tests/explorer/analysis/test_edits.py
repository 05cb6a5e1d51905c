import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.attribution import attribution
from explorer.analysis.edits import as_edited
from explorer.analysis.lens import streams
from explorer.analysis.norms import unembed, unembedding
from explorer.architecture.stream import stream_taps
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture

ON_THE_WAY = ("blocks.0.attn.out", "blocks.1.ffn.out", "logits")


def each_edit(config) -> list[str]:
    """Of every value between a part and its logit, as a whole and of one dimension."""
    taps = [*stream_taps(config), *ON_THE_WAY]
    return [f"{tap}{part}" for tap in taps for part in ("*scale*-1.5", ".3*scale*4", "*zero")]


def test_a_value_is_what_the_hooks_make_of_it(lms, trace, style):
    """That of a run with the edit, of what was computed before it."""
    for text in each_edit(trace.config):
        changed = capture(lms[style], trace.token_ids, parse_edits(text))
        (edit,) = changed.edits
        expected = as_edited(changed, edit.tap, trace[edit.tap])
        assert_allclose(changed[edit.tap], expected, atol=1e-6, err_msg=text)
        if edit.operation == "scale":
            assert np.abs(changed[edit.tap] - trace[edit.tap]).max() > 0.01, text


def test_what_is_not_edited_is_the_same_array(trace):
    assert as_edited(trace, "final_norm", trace["final_norm"]) is trace["final_norm"]


@pytest.mark.parametrize("ids", [(17, None), (3, 17)])
def test_parts_add_up_to_the_logit_and_the_last_depth_to_all_logits(lms, trace, style, ids):
    for text in each_edit(trace.config):
        changed = capture(lms[style], trace.token_ids, parse_edits(text))
        assert attribution(changed, 9, *ids).error <= 1e-4, text
        assert_allclose(unembed(changed, streams(changed, slice(9, 10))[-1])[0], changed["logits"][9], atol=1e-4)


def test_a_token_s_own_direction_follows_an_edit_of_its_logit(lms, trace, style):
    changed = capture(lms[style], trace.token_ids, parse_edits("logits.17*scale*3"))
    assert_array_equal(unembedding(changed, 17), 3 * unembedding(trace, 17))
    assert_array_equal(unembedding(changed, 16), unembedding(trace, 16))
