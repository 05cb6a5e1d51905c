"""Panel of the next token: the sampling stages, the random number, and the settings."""

from html import escape

import gradio as gr

from explorer.state.generation_settings import MAX_STOP_CHARS, RANGES, GenerationSettings
from explorer.translations import N_, _, translate
from explorer.web.protocol import NEXT_TOKEN, NEXT_TOKEN_WORDS
from explorer.web.widgets.distribution import NextTokenTable
from explorer.web.widgets.presets import SamplingPresets
from explorer.web.widgets.words import TextBlock

DEFAULTS = GenerationSettings()
NO_FILTERS = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}  # nothing is cut or penalised
PRESETS = {
    N_("always the likeliest"): NO_FILTERS | {"temperature": 0.0},
    N_("careful"): NO_FILTERS | {"temperature": 0.5, "top_p": 0.9},
    N_("balanced"): {name: getattr(DEFAULTS, name) for name in ("temperature", *NO_FILTERS)},
    N_("adventurous"): NO_FILTERS | {"temperature": 1.2, "top_p": 0.95},
}
SETTING_LABELS = {
    "temperature": N_("temperature"),
    "top_k": N_("top-k"),
    "top_p": N_("top-p"),
    "min_p": N_("min-p"),
    "repetition_penalty": N_("repetition penalty"),
}


class SamplingPanel:
    """The distribution after the selected token and the settings of sampling, built in the open `gr.Blocks`."""

    def __init__(self):
        gr.Markdown("## " + escape(_("Next token")))
        TextBlock(elem_id=NEXT_TOKEN_WORDS)
        NextTokenTable(elem_id=NEXT_TOKEN)
        self.presets = SamplingPresets(
            {translate(name): settings for name, settings in PRESETS.items()}, elem_id="presets"
        )
        with gr.Column(elem_classes="settings"):
            self.temperature = make_slider("temperature", 0.05, _("0 takes the likeliest; higher surprises more."))
            self.top_k = make_slider("top_k", 1, _("Only the k likeliest can be drawn; 0 keeps all."), maximum=4096)
            self.top_p = make_slider("top_p", 0.01, _("Only the likeliest that add up to this; 1 keeps all."))
        with gr.Accordion(_("more"), open=False, elem_id="more-settings"):
            self.min_p = make_slider("min_p", 0.01, _("How likely at least, beside the likeliest; 0 keeps all."))
            self.repetition_penalty = make_slider(
                "repetition_penalty", 0.05, _("Makes tokens already there less likely; 1 does not.")
            )
            with gr.Row():
                self.max_new_tokens = make_integer_box(
                    "max_new_tokens", _("new tokens"), _("How many Generate writes.")
                )
                self.seed = make_integer_box("seed", _("seed"), _("The same seed, the same luck."))
            self.stop_strings = gr.Textbox(
                DEFAULTS.stop_strings,
                label=_("stop text"),
                info=_("Writing ends where this appears; empty for none."),
                max_length=MAX_STOP_CHARS,
                interactive=True,
            )

    @property
    def settings(self) -> dict[str, gr.components.Component]:
        """The widget of each field of `GenerationSettings`."""
        return {name: getattr(self, name) for name in DEFAULTS.as_dict()}


def make_slider(name: str, step: float, info: str, maximum: float | None = None) -> gr.Slider:
    low, high = RANGES[name]
    return gr.Slider(
        low,
        maximum or high,
        getattr(DEFAULTS, name),
        step=step,
        label=translate(SETTING_LABELS[name]),
        info=info,
        interactive=True,
    )


def make_integer_box(name: str, label: str, info: str) -> gr.Number:
    low, high = RANGES[name]
    return gr.Number(
        getattr(DEFAULTS, name),
        label=label,
        info=info,
        precision=0,
        minimum=low,
        maximum=high,
        min_width=90,
        interactive=True,
    )
