"""Controls of a view: fields, interventions, prompts, a second run, and the training step."""

from collections.abc import Sequence
from typing import Any

from explorer.analysis.steering import decode_prompt_lists, prompt_lists_by_direction
from explorer.explain.notation import quote_token, token_formatter
from explorer.interventions import (
    CrossRunIntervention,
    DirectionIntervention,
    DirectionSpec,
    Intervention,
    RemoveDirection,
    Scale,
)
from explorer.interventions.intervention import format_amount
from explorer.lessons.example_prompts import PatchingPromptPair
from explorer.state.page_state import PageState
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import checkpoints_of_training, model_name, step_label, training_step
from explorer.translations import N_, _, translate
from explorer.views.intervention_controls import InterventionControl
from explorer.views.selection import SelectionDropdown
from explorer.web.widgets import HtmlWidget, fill_template
from explorer.web.widgets.header import ModelPicker

MAX_OPTIONS = 100


class SelectionDropdowns(HtmlWidget):
    """A drop-down list for each field; it follows the selection."""

    kind = "choosers"

    def __init__(self, **kwargs):
        super().__init__(html='<div class="choosers"></div>', **kwargs)

    @staticmethod
    def pack(fields: Sequence[SelectionDropdown], all_of_them: bool = True) -> dict[str, Any]:
        """Return the fields with their options as (value, text) pairs.

        Fields with too many numbers for a list are typed instead, from 0 to `most`.

        Args:
            all_of_them: whether these are all fields; if not, the lists of the others stay as they are.
        """
        packed = [
            {"field": field.field, "title": field.title}
            | (
                {"most": len(field.options) - 1}
                if is_number_input(field)
                else {"options": list(map(list, field.options))}
            )
            | ({"free": True} if field.is_free else {})
            for field in fields
        ]
        return {"choices": packed, "all": all_of_them}


def is_number_input(field: SelectionDropdown) -> bool:
    """Return whether a field has too many numbered options for a list."""
    return len(field.options) > MAX_OPTIONS and all(text == str(i) for i, (_label, text) in enumerate(field.options))


class InterventionControls(HtmlWidget):
    """A slider, switch or list of scopes for each intervention; it writes the state's and follows them."""

    kind = "what_ifs"

    def __init__(self, **kwargs):
        super().__init__(html='<div class="what-ifs"></div>', **kwargs)

    @staticmethod
    def pack(controls: Sequence[tuple[InterventionControl, float]]) -> list[dict[str, Any]]:
        """Return the widget's value; texts of interventions are paired with prefixes of those they replace.

        Args:
            controls: the available controls with their current amounts.
        """
        return [
            {
                "title": control.title,
                "edit": control.texts()[0],
                "group": control.group,
                "everywhere": [*control.texts()],
                "here": [*control.texts(here=True)] if control.here else None,
                "switch": control.is_switch,
                "scopes": [
                    [scope.title, text] for scope, text in zip(control.scopes, control.scope_texts(), strict=True)
                ],
                "log": control.log,
                "minimum": control.slider_position(control.minimum),
                "maximum": control.slider_position(control.maximum),
                "step": control.step,
                "ablates": control.kind is Scale,
                "default": control.default,
                "amount": amount,
                "amountHere": control.amount_here,
            }
            for control, amount in controls
        ]


class ActiveInterventionList(HtmlWidget):
    """The interventions of both runs, each with a button that removes it, and their effect; empty without any."""

    kind = "changes"

    def __init__(self, **kwargs):
        super().__init__(html='<div class="changes" role="status"></div><p class="effect" role="status"></p>', **kwargs)

    @staticmethod
    def pack(trace: Trace, other: Trace | None = None) -> dict[str, list[list[str]]]:
        """Return each run's interventions, as text and description, by the state's field that holds them.

        Args:
            other: the second run's trace; None without one.
        """
        runs = {"edits": trace} | ({"b.edits": other} if other else {})
        is_foreign = other is not None and trace.model != other.model

        def describe(run: Trace, intervention: Intervention) -> str:
            if isinstance(intervention, DirectionIntervention):
                return describe_steering_briefly(run, intervention)
            description = intervention.describe(run.config, token_formatter(run))
            return (
                _("{change}: another model’s value", change=description)
                if is_foreign and isinstance(intervention, CrossRunIntervention)
                else description
            )

        return {
            name: [[str(intervention), describe(run, intervention)] for intervention in run.edits]
            for name, run in runs.items()
        }


def describe_steering_briefly(trace: Trace, intervention: DirectionIntervention) -> str:
    """Name the direction, the place and the strength, as in "happy, not sad × 0.5, after layer 3"."""
    spec, (layer, name, _part) = intervention.direction, intervention.target_labels()
    built_in, format_token = prompt_lists_by_direction(trace).get(str(spec)), token_formatter(trace)
    direction = translate(built_in.name) if built_in else spec.describe(format_token)
    if spec.lists and not built_in:
        first, second = (format_token(prompts[0]) for prompts in spec.lists)
        direction = _("{first} less {second}", first=first, second=second)
    target = _("after layer {layer}", layer=layer) if name == "resid_post" else intervention.target_text()
    template = N_("{direction} × {amount}, {target}")
    if isinstance(intervention, RemoveDirection):
        template = N_("without {direction}, {target}")
    text = translate(template, direction=direction, amount=format_amount(intervention.amount or 0), target=target)
    positions = intervention.positions
    return text if positions is None else _("{change}, {where}", change=text, where=positions.describe())


LINE_BREAK = "↵"  # within a prompt, as in the strip of tokens


class DirectionPromptBoxes(HtmlWidget):
    """Two text boxes with a prompt a line, initialised with the lists of the current direction."""

    kind = "prompt_lists"

    def __init__(self, **kwargs):
        html = fill_template(
            '<details class="lists"><summary>{title}</summary><p>{text}</p><div class="two">'
            '<label><span>{towards}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '<label><span>{away}</span><textarea rows="5" spellcheck="false" maxlength="10000"></textarea></label>'
            '</div><button type="button"></button> <span class="error" role="status"></span></details>',
            title=_("A direction of your own: two lists of prompts"),
            text=_(
                "Two lists of prompts that differ in one thing, a prompt a line (↵ for a line break). The direction "
                "goes from the second list’s mean stream to the first’s."
            ),
            towards=_("prompts that have it"),
            away=_("prompts that have it not"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(trace: Trace, recipe: DirectionSpec, layer: int) -> dict[str, Any] | None:
        """Return the widget's value; None if the tokenizer is unknown.

        Args:
            recipe: spec of the current direction.
            layer: after which the means would be computed.
        """
        if not trace.token_bytes:
            return None
        lists = decode_prompt_lists(trace, recipe) or ([], [])
        return {
            "lists": ["\n".join(text.replace("\n", LINE_BREAK) for text in prompts) for prompts in lists],
            "make": _("Take their means after layer {layer}", layer=layer),
        }


def split_prompts(text: str) -> list[str]:
    """Return the prompts of a text box, without empty lines."""
    return [line.replace(LINE_BREAK, "\n") for line in text.splitlines() if line.strip()]


class PromptPairButtons(HtmlWidget):
    """A list of pairs of prompts; each loads the corrupted one as A and the clean one as B."""

    kind = "prompt_pairs"

    def __init__(self, pairs: Sequence[PatchingPromptPair], **kwargs):
        buttons = (
            fill_template(
                '<button type="button" data-pair="{place}">'
                "<b>{name}</b><span>{clean}</span><span>{corrupted}</span></button>",
                place=str(index),
                name=translate(pair.name),
                clean=_("clean: “{prompt}” → {answer}", prompt=pair.clean, answer=quote_token(pair.answer)),
                corrupted=_("corrupted: “{prompt}” → {answer}", prompt=pair.corrupted, answer=quote_token(pair.wrong)),
            )
            for index, pair in enumerate(pairs)
        )
        begins = fill_template('<details class="menu pairs"><summary>{pairs}</summary>', pairs=_("pairs of prompts"))
        super().__init__(
            html=f'{begins}<div>{"".join(buttons)}</div></details><div class="ready" hidden></div>', **kwargs
        )


class PromptAdviceLine(HtmlWidget):
    """A line with a sentence and a better prompt; hidden if there is none."""

    kind = "advice"

    def __init__(self, **kwargs):
        super().__init__(html='<div class="advice" role="note"></div>', **kwargs)

    @staticmethod
    def pack(text: str = "", offer: str = "") -> dict[str, Any]:
        """Return the widget's value.

        Args:
            text: the sentence; "" hides the line.
            offer: a better prompt.
        """
        return {"words": text, "offer": offer}


class TrainingStepSlider(HtmlWidget):
    """A slider over a model's checkpoints, and a button that plays them; of a single one, a button to another model.

    The latter is in sight in the tab Training alone. The slider of a second run stands below.
    """

    kind = "series"

    def __init__(self, **kwargs):
        html = fill_template(
            '<div class="series training-step" role="group" aria-label="{name}" hidden><button type="button" '
            'class="play" title="{play_is}"></button></div><div class="training-step" hidden></div>',
            name=_("step of its training"),
            play_is=_("plays the steps one after another; any key stops it"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(checkpoint: str, checkpoints: Sequence[str]) -> dict[str, Any]:
        """Return the widget's value: the steps of this training, and the last checkpoint with a step; "" for none."""
        with_steps = [name for name in checkpoints if training_step(name) is not None]
        return {"moments": training_moments(checkpoint, checkpoints), "other": max(with_steps, default="")}


def training_moments(checkpoint: str, checkpoints: Sequence[str]) -> list[list[str]]:
    """Return name, label and tick of every checkpoint of the same training; empty if there is only one."""
    series = checkpoints_of_training(checkpoint, checkpoints)
    return [[name, step_label(name), step_tick_label(name)] for name in series] if len(series) > 1 else []


def step_tick_label(checkpoint: str) -> str:
    """Return the label of a checkpoint's tick on the slider."""
    step = training_step(checkpoint)
    return "" if step is None else f"{step:,}"


# kind of an alignment -> what is said of it
ALIGNMENT_TEXTS = {
    "same": N_("Both texts have the same tokens"),
    "length": N_("Both texts are equally long: each token stands beside the one at its position"),
    "edited": N_("Tokens that both texts share stand beside each other"),
    "pinned": N_("Tokens stand beside each other as you paired them"),
    "none": N_("No token of B matches one of A: look at A and B in turn"),
}


class RunComparisonControls(HtmlWidget):
    """Ways to add a second run if there is one; with two a summary, the switch A, B, A − B, A | B, and alignment."""

    kind = "runs"

    def __init__(self, **kwargs):
        html = fill_template(
            '<div class="runs" role="group" aria-label="{name}"><div class="ways"></div><div class="two" hidden></div>'
            "</div>",
            name=_("A second run to compare with"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        page_state: PageState, comparison: Comparison | None, checkpoints: Sequence[str], prompts: tuple[str, str]
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            comparison: of the two runs; None without a second one.
            checkpoints: names of all checkpoints.
            prompts: texts of both runs' prompts.
        """
        model = model_name(page_state.run.checkpoint)
        models = [pair for pair in ModelPicker.pack(checkpoints) if pair[0] != model]
        step = neighbour_checkpoint(page_state.run.checkpoint, checkpoints)
        fields = {"models": models, "step": step, "changed": bool(page_state.run.edits), "prompt": prompts[0]}
        if not page_state.visible_second_run or comparison is None:
            return fields | {"two": None}
        alignment = comparison.alignment
        same_text = comparison.trace.tokens == comparison.other.tokens
        about = [
            model_name(page_state.other.checkpoint) if model_name(page_state.other.checkpoint) != model else "",
            _("the same text") if same_text else prompts[1],
            "; ".join(
                intervention.describe(comparison.other.config, token_formatter(comparison.other))
                for intervention in comparison.other.edits
            )
            or (_("without the changes") if comparison.is_unchanged else ""),
        ]
        return fields | {
            "two": {
                "prompt": prompts[1],
                "about": " · ".join(filter(None, about)),
                "aligned": translate(ALIGNMENT_TEXTS[alignment.kind]),
                "gaps": [alignment.partners.count(None), alignment.inverse.count(None)],
                "partners": list(alignment.partners),
                "back": list(alignment.inverse),
                "pins": len(page_state.pins),
                "comparable": comparison.has_aligned_tokens,
                "moments": training_moments(page_state.other.checkpoint, checkpoints),
            }
        }


def neighbour_checkpoint(checkpoint: str, checkpoints: Sequence[str]) -> str:
    """Return the checkpoint before this one, or after the first one, of the same training; "" if there is no other."""
    series = checkpoints_of_training(checkpoint, checkpoints)
    if len(series) < 2 or checkpoint not in series:
        return ""
    index = series.index(checkpoint)
    return series[index - 1 if index else 1]
