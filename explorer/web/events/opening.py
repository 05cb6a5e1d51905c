"""From a prompt or an address to what is asked, and where a run is looked at first."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis.attribution import attribution
from explorer.analysis.feed_forward import neurons
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.page_state import OF_OTHER, PageState
from explorer.state.run import MOST_TOKENS, Run
from explorer.state.selection import OWN_TABS, Selection
from explorer.tracing.runs import Runs
from explorer.tracing.translation import is_begun, without_beginning
from explorer.views.explained import explained
from model.generation.window import window_start


class Opening:
    """Errors are those of `Runs`."""

    def __init__(self, runs: Runs):
        self.runs = runs

    def run_of(self, checkpoint: str, text: str, begun: bool = True) -> Run:
        """The run of a prompt; of one longer than the context the part that `generate` would see, too.

        Args:
            begun: whether what the model expects before every text is put there.

        Raises:
            UserError: the prompt is empty.
        """
        checkpoint = self.runs.library.offered.resolve(checkpoint)
        lm, tokenizer = self.runs.model(checkpoint)
        if not isinstance(text, str):
            raise UserError(_("The prompt must be text, got {got!r}.", got=text))
        if not (ids := tokenizer.encode(text)):
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        ids = [*tokenizer.beginning * begun, *ids]
        start = window_start(len(ids), lm.config.context_length)
        return Run(checkpoint, tuple(ids[start:]), dropped=start)

    def other_beginning(self, asked: PageState) -> PageState:
        """The prompt without what its model expects before every text, or with it where it is not there.

        Raises:
            UserError: the model expects nothing.
        """
        run, (_lm, tokenizer) = asked.run, self.runs.model(asked.run.checkpoint)
        if not tokenizer.beginning:
            raise UserError(_("This model expects nothing before a text."))
        own = without_beginning(run.prompt, tokenizer)
        if not own:
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        prompt = own if is_begun(run.prompt, tokenizer) else (*tokenizer.beginning, *own)[:MOST_TOKENS]
        return replace(asked, run=replace(run, prompt=prompt))

    def restored(self, state: Mapping[str, Any]) -> PageState:
        """What a URL asks: its ids, or a prompt given as `text`; what it leaves open: where most is seen.

        Raises:
            UserError: also where it says something of a second run that cannot be without more.
        """
        asked = PageState.parse(with_other_model(self._resolved(state)))
        if asked.selection.view in OWN_TABS and not self.runs.library.offered.own_module:
            asked = replace(asked, selection=replace(asked.selection, view=Selection.view))
        look = self.within
        if not asked.run.prompt:
            run = self.run_of(asked.run.checkpoint, str(state.get("text", "")))
            asked = replace(asked, run=replace(run, edits=asked.run.edits))
            look = self.within if "query" in state else self.at_end
        if asked.other:
            if not asked.other.prompt and isinstance(text := state.get("b.text"), str):
                other = replace(self.run_of(asked.other.checkpoint, text), edits=asked.other.edits)
                asked = replace(asked, other=other)
            self.runs.comparison(asked)
        return self._where_most_is_seen(look(asked), state.keys())

    def _resolved(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the state with the checkpoint that each name of a model stands for."""
        names = {name: state.get(name) for name in ("checkpoint", f"{OF_OTHER}checkpoint")}
        resolve = self.runs.library.offered.resolve
        return {**state, **{name: resolve(model) for name, model in names.items() if model and isinstance(model, str)}}

    def _where_most_is_seen(self, asked: PageState, named: Collection[str]) -> PageState:
        """Of what is not `named`: the head that moves the explained logit most; the neuron that writes most at the
        chosen token, as many do nothing there."""
        (_lm, trace), selection = self.runs.held(asked.run), asked.selection
        if not named & {"layer", "head"}:
            heads = attribution(trace, selection.query, *explained(trace, selection)).heads  # (L, H)
            layer, head = np.unravel_index(np.abs(heads).argmax(), heads.shape)
            selection = replace(selection, layer=int(layer), head=int(head))
        if "neuron" not in named:
            strongest = neurons(trace, selection.layer, selection.query).top(1)
            selection = replace(selection, neuron=int(strongest[0]))
        return replace(asked, selection=selection)

    def where_it_shows(self, asked: PageState) -> PageState:
        """Return the same run, looked at from its last token where it is seen why the likeliest token follows: from the
        head that moves its logit most to the token which that looks at most."""
        asked = self.at_end(replace(asked, selection=replace(asked.selection, target=1, rival=0, pattern="weight")))
        selection = self._where_most_is_seen(asked, set()).selection
        pattern = self.runs.trace(asked.run)[f"blocks.{selection.layer}.attn.pattern"]
        return replace(asked, selection=replace(selection, key=int(pattern[selection.head, selection.query].argmax())))

    def within(self, asked: PageState) -> PageState:
        """The same run, looked at in the same place or in the nearest that exists."""
        return replace(asked, selection=asked.selection.within(self.runs.trace(asked.run)))

    def at_end(self, asked: PageState) -> PageState:
        """The same run, looked at from its last token to the one before; what exists of the rest is kept."""
        last = len(self.runs.trace(asked.run)) - 1
        selection = replace(asked.selection, query=last, key=max(0, last - 1))
        return self.within(replace(asked, selection=selection))


def with_other_model(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a URL says, with A's model for B's where it gives B a text or changes of its own, and no model.

    Raises:
        UserError: it says something of B that needs more to make sense.
    """
    said = {name for name, value in state.items() if name.startswith(OF_OTHER) and value and value != "0"}
    names = ", ".join(sorted(said))
    if not said & {"b.checkpoint", "b.prompt", "b.edits"} and "b.text" not in state:
        if said:
            raise UserError(_("an address with {names} needs b.text, b.prompt, b.edits or b.checkpoint", names=names))
        return state
    if "b.prompt" not in said and (ids := said & {"b.generated", "b.dropped"}):
        raise UserError(_("an address with {names} needs b.prompt", names=", ".join(sorted(ids))))
    return state if "b.checkpoint" in said else {**state, "b.checkpoint": state["checkpoint"]}
