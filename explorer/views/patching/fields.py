"""The patching view's fields of the selection."""

from explorer.analysis.next_token import ranking_without_interventions
from explorer.explain.notation import escape_token
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views.select_fields import NUM_LISTED
from explorer.views.style import shorten_token


def likely_token_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the most probable tokens at the end, by their texts; first "" for the proposed token."""
    tokens = [
        trace.vocabulary[token_id] for token_id in ranking_without_interventions(trace, len(trace) - 1)[:NUM_LISTED]
    ]
    return [("", _("as proposed")), *((escape_token(text), shorten_token(text)) for text in tokens)]


METRICS = {
    "logit_difference": N_("logit difference"),
    "log_probability": N_("log-probability"),
    "probability": N_("probability (hides negative effects)"),
}
DIRECTIONS = {"denoise": N_("denoising: clean into corrupted"), "noise": N_("noising: corrupted into clean")}
BY_POSITION = {
    "resid_pre": N_("residual stream"),
    "attn.out": N_("attention’s output"),
    "ffn.out": N_("feed-forward’s output"),
}
BY_HEAD = {
    "attn.z": N_("z, what it fetches"),
    "attn.q": N_("q, queries"),
    "attn.k": N_("k, keys"),
    "attn.v": N_("v, values"),
    "attn.pattern": N_("attention pattern"),
}
RECEIVERS = {
    "logits": N_("logits"),
    "q": N_("q of the chosen head"),
    "k": N_("k of the chosen head"),
    "v": N_("v of the chosen head"),
}
PATCHING_FIELDS = (
    # which of two runs is the clean one; the other is the corrupted one
    SelectionField("clean_run", "b", N_("clean"), {"b": N_("B (A is corrupted)"), "a": N_("A (B is corrupted)")}),
    # texts of the right and the wrong next token after the clean one; "" for the proposed ones
    SelectionField("answer", "", N_("answer"), options=likely_token_options, is_free=True),
    SelectionField("wrong", "", N_("wrong answer"), options=likely_token_options, is_free=True),
    SelectionField("metric", "logit_difference", N_("measure"), METRICS),
    # components of the maps by position and by head
    SelectionField("patch_position", "resid_pre", N_("by position"), BY_POSITION),
    SelectionField("patch_head", "attn.z", N_("by head"), BY_HEAD),
    # direction of patching in estimates and along paths
    SelectionField("patch_direction", "denoise", N_("estimates and paths"), DIRECTIONS),
    # of path patching: the logits, or a vector of the selected head
    SelectionField("receiver", "logits", N_("receiver"), RECEIVERS),
)
