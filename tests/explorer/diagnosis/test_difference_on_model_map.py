"""The mark on the model map at a module's first difference."""

from dataclasses import replace

from explorer.views.overview import VIEW as OVERVIEW
from tests.subtest_loops import subtest_each


def test_first_difference_is_marked_on_map(show_view, page_state):
    diagram = show_view(page_state, "overview").draw(OVERVIEW.panels[1])
    (marked,) = [part for part in diagram.parts if "≠" in part.hover_text]
    assert (marked.kind, marked.selects["layer"]) == ("rotation", 0)
    for sheet, box in zip(diagram.sheets, marked.boxes, strict=True):
        (sign,) = [word for word in sheet.labels if word.kind == "apart"]
        assert (sign.x, sign.y, sign.text) == (box[2], box[1], "≠")
    assert diagram.alt.endswith("Your module parts from the reference at blocks.0.attn.q_rot.")


@subtest_each(
    ("tap", "kind", "layer", "count", "told"),
    [
        ("embed", "token", None, 1, "embedding of"),
        ("blocks.1.attn_norm", "norm", 1, 1, "before the attention"),
        ("blocks.1.ffn_norm", "norm", 1, 1, "before the feed-forward"),
        ("blocks.1.attn.pattern", "head", 1, 3, "layer 1 head"),
        ("blocks.1.attn.k_rot", "rotation", 1, 1, "rotated"),
        ("blocks.1.attn.out", "o_proj", 1, 1, "o_proj"),
        ("blocks.2.ffn.gate", "feed_forward", 2, 1, "layer 2 feed-forward"),
        ("blocks.2.resid_mid", "addition", 2, 1, "what attention writes"),
        ("blocks.2.resid_post", "addition", 2, 1, "what feed-forward writes"),
        ("final_norm", "norm", 2, 1, "final_norm"),
        ("logits", "lm_head", None, 1, "lm_head"),
    ],
)
def test_every_tap_has_component_on_map(show_view, page_state, tap, kind, layer, count, told):
    view = show_view(page_state, "overview")
    report = view.trace.diagnosis
    report_at_tap = replace(report, differences=(replace(report.differences[0], tap=tap), *report.differences[1:]))
    diagram = replace(view, trace=replace(view.trace, diagnosis=report_at_tap)).draw(OVERVIEW.panels[1])
    marked = [part for part in diagram.parts if "≠" in part.hover_text]
    assert len(marked) == count and all(told in part.hover_text for part in marked)
    assert {(part.kind, part.selects.get("layer")) for part in marked} == {(kind, layer)}
