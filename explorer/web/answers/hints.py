"""The sentence below the prompt: what to look for in this run, or how to ask better."""

from dataclasses import replace
from typing import Any

from explorer.lessons.coach import advice
from explorer.lessons.examples import BUNDLED, Example, example_of
from explorer.lessons.looking_back import furthest_look
from explorer.state.run import Run
from explorer.tracing.runs import Runs


def hint(runs: Runs, run: Run) -> tuple[str, dict[str, Any] | None, str]:
    """What to look for in an example, or how to end the prompt better, or once there is more than a prompt, at what
    of it heads look back: a sentence, the selection that shows it, and the better prompt; empty where there is
    none."""
    if run.generated:
        trace = runs.trace(run)
        look = furthest_look(trace, len(trace) - 1)
        return (look.words(trace), look.as_selection(), "") if look else ("", None, "")
    if example := example_at(runs, run):
        return example.hint, example.look, ""
    _, tokenizer = runs.model(run.checkpoint)
    text = tokenizer.decode(run.prompt)
    found = advice(runs.trace(replace(run, generated=())))
    if found is None:
        return "", None, ""
    better = found.follow(text)
    whole = not run.dropped and tuple(tokenizer.encode(text)) == run.prompt  # or else the text is not all there is
    return found.words, None, better if whole and better != text else ""


def example_at(runs: Runs, run: Run) -> Example | None:
    """The example that the run's prompt is, where what is said of it holds."""
    _, tokenizer = runs.model(run.checkpoint)
    known = run.checkpoint == BUNDLED and not run.edits
    return example_of(tokenizer.decode(run.prompt)) if known else None
