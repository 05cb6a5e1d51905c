"""Header of the page and its plain texts: models, depth, language and the glossary."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.notation import format_number
from explorer.lessons.glossary import ENTRIES, ENTRY_BY_NAME, FIRST_TERMS, GlossaryEntry, entry_names_by_form
from explorer.tracing.jobs import Job
from explorer.tracing.training_history import checkpoints_of_training, model_name
from explorer.translations import LANGUAGES, _, translate
from explorer.web.file_uploads import MAX_UPLOAD_BYTES, too_large_sentence
from explorer.web.widgets import HtmlWidget, escape_text, fill_template, json_attribute
from model.pretrained.reference_logits import LogitAgreement


class ModelPicker(HtmlWidget):
    """A drop-down list that selects a model.

    One with several checkpoints of its training is one entry (`TrainingStepSlider` selects the step).

    It follows the state's checkpoint.

    Args:
        checkpoints: names of all checkpoints.
        allows_opening: whether the list has an entry for opening another model (`OpenModelForm`).
    """

    kind = "picker"

    def __init__(self, checkpoints: Sequence[str], allows_opening: bool = False, **kwargs):
        data = f'data-models="{json_attribute(self.pack(checkpoints))}" data-opens="{json_attribute(allows_opening)}"'
        models = f'<div class="picker" {data}>'
        models += fill_template('<select aria-label="{model}"></select></div>', model=_("model"))
        super().__init__(html=models, **kwargs)

    @staticmethod
    def pack(checkpoints: Sequence[str]) -> list[list[str]]:
        """Return the name of every model with that of its last checkpoint."""
        models = dict.fromkeys(map(model_name, sorted(checkpoints)))
        return [[model, last_checkpoint(model, checkpoints)] for model in models]


def last_checkpoint(model: str, checkpoints: Sequence[str]) -> str:
    """Return the last checkpoint of a model's training."""
    return checkpoints_of_training(model, checkpoints)[-1]


class OpenModelForm(HtmlWidget):
    """Form that opens a model of the Hugging Face Hub, of a path or of a file, and the visible model's check.

    Args:
        allows_paths: whether paths and files are opened.
    """

    kind = "open_model"

    def __init__(self, allows_paths: bool = False, **kwargs):
        name, files, limits = _("model on the Hugging Face Hub"), "", ""
        if allows_paths:
            name = _("model on the Hugging Face Hub, or a path on this machine")
            files = fill_template(
                '<button type="button" class="choose" title="{drop}">{choose}</button>'
                '<input type="file" accept=".gguf" hidden aria-label="{choose}">',
                choose=_("Choose a file…"),
                drop=_("a GGUF file; it can be dropped on the page, too"),
            )
            limits = f' data-max-bytes="{MAX_UPLOAD_BYTES}" data-too-large="{escape_text(too_large_sentence())}"'
        boxes = fill_template(
            '<form hidden><label>{name} <input type="text" maxlength="1000" '
            'placeholder="{such_as}" spellcheck="false" autocapitalize="off" list="hub-names">'
            '</label><datalist id="hub-names"></datalist><button type="submit">{look}</button>',
            name=name,
            such_as=_("such as {name}", name="HuggingFaceTB/SmolLM2-135M"),
            look=_("Look it up"),
        )
        close = fill_template(
            '<button type="button" class="close" aria-label="{close}">×</button></form>'
            '<div class="opening" role="status"></div><p class="check" role="status" hidden></p></div>',
            close=_("open none"),
        )
        html = f'<div class="open-model"{limits} hidden>{boxes}{files}{close}'
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        names: Sequence[str], agreement: LogitAgreement | None, check_job: Job | None, is_external: bool
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            names: names on the Hub that may be opened, if not all may.
            agreement: of the visible model; None if it is unknown.
            check_job: job that would compute it; None if there is none.
            is_external: whether the model was trained elsewhere.
        """
        text = agreement_text(agreement) if agreement else _("not checked against another implementation") * is_external
        return {
            "names": list(names),
            "words": text,
            "differs": bool(agreement and not agreement.holds),
            "check": check_job.name if check_job else "",
        }


def agreement_text(agreement: LogitAgreement) -> str:
    """Format the result of a comparison with another implementation."""
    size = format_number(agreement.max_difference)
    if agreement.holds:
        if agreement.reference == "transformers":
            return _("✓ agrees with transformers: logits differ by at most {size}", size=size)
        return _("✓ agrees with the logits that came with it: they differ by at most {size}", size=size)
    if agreement.reference == "transformers":
        return _("⚠ differs from transformers: logits by up to {size}", size=size)
    return _("⚠ differs from the logits that came with it, by up to {size}", size=size)


DIAL_HTML = """<div class="mode" role="group" aria-label="{depth}">
<button type="button" data-mode="story" title="{story_is}">{story}</button>
<button type="button" data-mode="numbers" title="{numbers_is}">{numbers}</button>
<button type="button" data-mode="formula" title="{formula_is}">{formula}</button>
<button type="button" data-mode="code" title="{code_is}">{code}</button>
</div>"""


class ExplanationDepthButtons(HtmlWidget):
    """Buttons: a story in four steps; every part with its numbers; with the formulas, too; with the code, too."""

    kind = "mode_switch"

    def __init__(self, **kwargs):
        html = fill_template(
            DIAL_HTML,
            depth=_("how much is shown"),
            story=_("Story"),
            story_is=_("one story in four steps"),
            numbers=_("Numbers"),
            numbers_is=_("every part, number and setting"),
            formula=_("Formula"),
            formula_is=_("the formulas, with the numbers of this run"),
            code=_("Code"),
            code_is=_("the lines of code that compute it"),
        )
        super().__init__(html=html, **kwargs)


class LanguageList(HtmlWidget):
    """A list of languages, each in its own name; choosing another one reloads the page in it and stores the choice."""

    kind = "language_list"

    def __init__(self, **kwargs):
        options = "".join(
            f'<option value="{tag}" lang="{tag}">{escape_text(name)}</option>' for tag, name in LANGUAGES.items()
        )
        begins = fill_template('<select class="language" aria-label="{language}">', language=_("language"))
        super().__init__(html=f"{begins}{options}</select>", **kwargs)


class TextBlock(HtmlWidget):
    """Shows its content as plain text, without markup.

    Args:
        text: shown at first.
        kind: "prose", "formula" or "code", which sets the font.
    """

    kind = "words"

    def __init__(self, text: str = "", *, kind: str = "prose", **kwargs):
        reached = (
            fill_template(' role="group" aria-label="{name}" tabindex="0"', name=_("Code")) if kind == "code" else ""
        )
        html = f'<div class="{kind}"{reached}>{escape_text(text)}</div>'  # code scrolls by the keyboard, too
        super().__init__(html=html, **kwargs)


class NumbersViewLink(HtmlWidget):
    """A link to the view of numbers that shows more."""

    kind = "numbers_view_link"

    def __init__(self, **kwargs):
        super().__init__(html='<p class="in-full"></p>', **kwargs)

    @staticmethod
    def pack(text: str, change: dict[str, Any], opens: str = "") -> dict[str, Any]:
        """Return the widget's value.

        Args:
            change: the change of the selection that leads there.
            opens: the switch (`toggle_button_markup`) that it opens besides; "" for none.
        """
        return {"words": text, "look": change, "opens": opens}


class CollapseButton(HtmlWidget):
    """A button, on small screens only, that expands and collapses the parts of the page listed in page.css.

    Args:
        text: of the button.
        name: label for screen readers in place of a sign.
    """

    kind = "fold"

    def __init__(self, *, text: str = "", name: str = "", **kwargs):
        label = 'aria-label="{name}"' if name else ""
        html = f'<button type="button" class="fold" aria-expanded="false" {label}>{{text}}</button>'
        super().__init__(html=fill_template(html, text=text, name=name), **kwargs)


class GlossaryList(HtmlWidget):
    """A list of terms that opens on request: first those for beginners, with numbers of the run, then the others.

    Its script explains each term wherever it is on the page (static/glossary_terms.js).
    """

    kind = "glossary"

    def __init__(self, **kwargs):
        first = [ENTRY_BY_NAME[name] for name in FIRST_TERMS]
        others = [entry for entry in ENTRIES if entry.name not in FIRST_TERMS]
        meanings = {entry.name: translate(entry.meaning) for entry in ENTRIES}
        begins = fill_template(
            "<details><summary>{asked}</summary><h3>{ten}</h3>",
            asked=_("What do the words mean?"),
            ten=_("Ten words to begin with"),
        )
        known = json_attribute([entry_names_by_form(), meanings])
        then = fill_template("</dl><h3>{others}</h3><dl>", others=_("All other words"))
        rows = "".join(map(definition_row, first)), "".join(map(definition_row, others))
        html = f'{begins}<dl class="first" data-known="{known}">{rows[0]}{then}{rows[1]}</dl></details>'
        super().__init__(html=html, **kwargs)


def definition_row(entry: GlossaryEntry) -> str:
    """Return the markup of a term and its meaning."""
    name, term, text = map(escape_text, (entry.name, translate(entry.name), translate(entry.meaning)))
    return f'<dt>{term}</dt><dd data-entry="{name}">{text}</dd>'


class SearchButton(HtmlWidget):
    """A button that opens the search, which finds what is on the page and goes there.

    The same module has the list of keys.
    """

    kind = "search_button"
    script = "search"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            '<button type="button" class="open" aria-haspopup="dialog" aria-keyshortcuts="Control+K Meta+K /">'
            '<span class="words">{search}</span> <kbd>Ctrl K</kbd></button>',
            search=_("Search"),
        )
        super().__init__(html=html, **kwargs)
