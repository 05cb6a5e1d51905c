"""Python that reproduces a figure of the page with the functions of `explorer`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, Intervention
from explorer.state.page_state import PageState, RunRequest, chat_messages
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import encode_messages, encode_prompt, strip_bos
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.selection import complete_selection
from explorer.views.two_run_figures import FigurePlaceholder, value_key
from explorer.views.view import PAGE_KINDS, Panel
from explorer.web.browser_api.open_view import OpenView, make_open_view
from explorer.web.browser_api.page_contents import figure_payload
from explorer.web.shared_constants import element_id
from model.errors import ModelError
from model.pretrained.chat_template import has_chat_template

# Fields of the selection that no figure depends on, or that the script says otherwise.
PAGE_FIELDS = {
    *("view", "depth", "unfolded", "find", "shade", "why", "stand_ins", "guess", "lesson", "step", "reply", "shown"),
}

NAMED_FIELDS = ("layer", "head", "query", "key", "neuron")


def python_script(runs: RunService, page_state: PageState, figure: str = "") -> str:
    """Return a script that shows a figure of the page's state; only what differs from defaults is written.

    Args:
        figure: element id of a panel of the open view; for any other id it is the view's first.

    Raises:
        UserError, CheckpointError: there is no such run.
    """
    open_view, panel_name = make_open_view(runs, page_state).split_figure_id(figure)
    panel = find_panel(open_view, panel_name)
    if open_view.visible_run == "a" and not open_view.view.is_comparison and panel and not panel.compared_run:
        open_view = replace(open_view, comparison=None, has_other=False)
    script = PythonScriptBuilder(runs, page_state.chat)
    needs_other = page_state.other and (open_view.has_other or page_state.run.patches)
    other = runs.second_run(page_state) if needs_other else None
    comparison = "run"
    script.add_model(page_state.run.checkpoint)
    if not open_view.has_other:
        script.add_run("run", page_state.run, other)
    else:
        script.add_runs(page_state.run, other)
        comparison = "run.compare(other)"
        if page_state.pins:
            script.imports.append("from explorer.run_figures import RunComparison")
            comparison = f"RunComparison.from_traces(run, other, {page_state.pins!r})"
    return script.text(figure_call(open_view, panel, comparison))


def find_panel(open_view: OpenView, name: str) -> Panel | None:
    """Return the panel of the open view with that name, or else its first one; None if it has none."""
    panels = [panel for panel in open_view.view.panels if open_view.has(panel)]
    return next((panel for panel in panels if panel.name == name), (panels or [None])[0])


@dataclass
class PythonScriptBuilder:
    """Lines that load models and run them.

    Attributes:
        runs: access to models and runs.
        chat: messages of the page's prompt, see `PageState`.
        imports: lines at the top.
        models: checkpoint -> the name of its variable.
        variables: name of a run's variable -> the run.
        lines: one for each model and run, in the order of their execution.
    """

    runs: RunService
    chat: str = ""
    imports: list[str] = field(default_factory=lambda: ["import explorer"])
    models: dict[str, str] = field(default_factory=dict)
    variables: dict[str, RunRequest] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def add_runs(self, run: RunRequest, other: RunRequest | None) -> None:
        """Add A, and B if there is one; whichever the other's patches need comes first."""
        if other and not other.patches:
            self.add_run("other", other, run)
        self.add_run("run", run, other)
        if other and other.patches:
            self.add_run("other", other, run)

    def add_run(self, name: str, run: RunRequest, other: RunRequest | None) -> None:
        """Add a run, and before it what its patches take values from: the other run's prompt, unpatched."""
        source = self.source_variable(name, other) if run.patches and other else ""
        edits = [intervention_literal(edit, source) for edit in run.edits if source or edit not in run.patches]
        token_ids = self.runs.visible_token_ids(run)
        if any(edit.for_prompt(token_ids) != edit for edit in run.edits):
            self.lines.append(
                python_comment(_("Means and patches cover the whole text here, and on the page its prompt alone."))
            )
        if any(edit.pins for edit in run.patches):
            self.lines.append(
                python_comment(
                    _("Patches use tokens aligned by text here, and on the page also those aligned by hand.")
                )
            )
        interventions = f", interventions=[{', '.join(edits)}]" * bool(edits)
        model = self.add_model(run.checkpoint)
        self.lines.append(f"{name} = {model}.run({self.prompt_literal(run.checkpoint, token_ids)}{interventions})")
        self.variables[name] = run

    def source_variable(self, name: str, other: RunRequest) -> str:
        """Return the variable of the run that patches of the run `name` take values from; add it if there is none."""
        source = replace(other.without_patches(), generated=())
        for variable, run in self.variables.items():
            if run == source:
                return variable
        self.add_run(f"source_of_{name}", source, None)
        return f"source_of_{name}"

    def add_model(self, checkpoint: str) -> str:
        """Return the variable of a model; add the model if it is new."""
        if checkpoint not in self.models:
            self.models[checkpoint] = "other_model" if self.models else "model"
            if self.runs.library.catalog.is_external(checkpoint) and "/" not in checkpoint:
                self.lines.append(python_comment(_("Replace the name by the path of this model on your machine.")))
            self.lines.append(f"{self.models[checkpoint]} = explorer.load({python_text_literal(checkpoint)})")
        return self.models[checkpoint]

    def prompt_literal(self, checkpoint: str, token_ids: tuple[int, ...]) -> str:
        """Return an argument for tokens: the page's messages or a text, or their ids if these would be other tokens."""
        lm, tokenizer = self.runs.model(checkpoint)
        messages = chat_messages(self.chat)
        if messages and has_chat_template(tokenizer):
            with suppress(ModelError):
                if encode_messages(messages, tokenizer, lm.config.context_length) == (token_ids, 0):
                    return f"messages={messages!r}"
        text = tokenizer.decode(strip_bos(token_ids, tokenizer))
        try:
            is_same = encode_prompt(text, tokenizer, lm.config.context_length) == (token_ids, 0)
        except UserError:  # there is no text
            is_same = False
        return python_text_literal(text) if is_same else repr([*token_ids])

    def text(self, last: str) -> str:
        """Return the script, which ends with the lines `last`."""
        install = python_comment(_("Install first, in a copy of the project: pip install ."))
        return "\n".join([install, *self.imports, "", *self.lines, last, ""])


def python_comment(words: str) -> str:
    """Return a comment of Python."""
    return f"# {words}"


def python_text_literal(text: str) -> str:
    """Return text as a Python literal, in double quotes if it has none itself."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in text else literal


def intervention_literal(edit: Intervention, source: str) -> str:
    """Return an intervention as Python: its text, or a call for one that takes values of the run `source`."""
    if not isinstance(edit, CrossRunIntervention):
        return python_text_literal(str(edit))
    arguments = [python_text_literal(edit.tap), python_text_literal(edit.operation)]
    arguments += [f"index={edit.index}"] * (edit.index is not None)
    arguments += [f"positions={python_text_literal(str(edit.positions))}"] * (edit.positions is not None)
    return f"explorer.make_intervention({', '.join(arguments)}, source={source})"


def figure_call(open_view: OpenView, panel: Panel | None, comparison: str) -> str:
    """Return the lines that show a panel's figure and take its numbers, or the page for one that only its scripts draw.

    Args:
        comparison: expression for what is drawn, one run or two that are compared.
    """
    if panel is None:
        return f"print({comparison})"
    view, is_on_page = open_view.view, panel.kind in PAGE_KINDS
    fields, visible_run = needed_fields(open_view, panel), open_view.selection.shown
    default = "a" if is_on_page or view.is_comparison else "difference"
    if open_view.has_other and visible_run != default:
        fields = {"shown": visible_run} | fields
    if is_on_page:
        unfolded = {"unfolded": element_id(view.name, panel.name)} if panel != find_panel(open_view, "") else {}
        return f"model.page({comparison}, {keyword_arguments({'view': view.name} | unfolded | fields)}).launch()"
    names = f"{python_text_literal(view.name)}, {python_text_literal(panel.name)}"
    call = f"{comparison}.figure({', '.join([names, *filter(None, [keyword_arguments(fields)])])})"
    return "\n".join(filter(None, [f"figure = {call}", "figure.show()", numbers_line(open_view.draw(panel))]))


def numbers_line(figure: Any) -> str:
    """Return the line that takes a figure's numbers as arrays; "" if it has none."""
    traces, layout = figure.traces_and_layout if isinstance(figure, go.Figure) else ([], {})
    keys = {number_key(plot_trace, layout) for plot_trace in traces}
    if len(keys) != 1:
        return ""
    (key,) = keys
    array = f"figure.data[0].{key}" if len(traces) == 1 else f"[trace.{key} for trace in figure.data]"
    quantity = traces[0].get("colorbar", {}).get("title", {}).get("text", "").replace("<br>", " ")
    return f"numbers = {array}  " + python_comment(quantity or _("what the figure draws"))


def number_key(plot_trace: go.Trace, layout: Mapping[str, Any]) -> str:
    """Return the name of the array with a trace's numbers, which is not always the drawn one."""
    key = layout["meta"].get("numbers", "")
    return key if plot_trace.get(key) is not None else value_key(plot_trace)


def keyword_arguments(fields: Mapping[str, Any]) -> str:
    """Return fields as keyword arguments."""
    literals = {name: python_text_literal(value) if isinstance(value, str) else value for name, value in fields.items()}
    return ", ".join(f"{name}={literal}" for name, literal in literals.items())


def needed_fields(open_view: OpenView, panel: Panel) -> dict[str, Any]:
    """Return the fields of the selection without which the panel's figure would be another.

    First those are left out that the page would choose so by itself, then those that the figure does not depend on.
    The place in the model and in the text is said wherever the figure depends on it.
    """
    trace, selection = open_view.trace, open_view.selection
    base = {name: getattr(selection, name) for name in ("view", "shown")}
    selected = {name: value for name, value in selection.as_dict().items() if name not in PAGE_FIELDS}
    if panel.is_selection_independent:
        return {}

    def complete(fields: Mapping[str, Any]) -> dict[str, Any]:
        completed = complete_selection(trace, base | fields).as_dict()
        return {name: completed[name] for name in selected}

    fields = drop_unneeded_fields(selected, lambda rest: complete(rest) == selected)

    def draw(fields: Mapping[str, Any]) -> Any:
        return replace(open_view, selection=complete_selection(trace, base | fields)).draw(panel)

    figure = draw(fields) if panel.kind not in PAGE_KINDS else None  # the page shows more than the figure
    if figure is None or isinstance(figure, FigurePlaceholder):
        return fields
    payload = figure_payload(figure)
    fields = drop_unneeded_fields(fields, lambda rest: figure_payload(draw(rest)) == payload)

    def is_shown(name: str) -> bool:
        return figure_payload(draw(selected | {name: max(0, selected[name] - 1) or 1})) != payload

    return {name: selected[name] for name in NAMED_FIELDS if name in fields or is_shown(name)} | fields


def drop_unneeded_fields(fields: Mapping[str, Any], suffices: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the fields without those that are not needed: the rest suffices. Layer and head are chosen together."""
    for names in (("layer", "head"), *((name,) for name in fields)):
        rest = {name: value for name, value in fields.items() if name not in names}
        if len(rest) < len(fields) and suffices(rest):
            fields = rest
    return dict(fields)
