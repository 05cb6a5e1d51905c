"""What the browser asks for: the open view and the prediction, as the contents of widgets by their element ids."""

from collections.abc import Callable, Mapping
from typing import Any

from explorer.components.choosers import Choosers
from explorer.components.figure import Figure
from explorer.components.head_grid import HeadGrid
from explorer.presenter import Presenter, Question
from explorer.settings import GenerationSettings
from explorer.views.view import SmallMultiples

SEEN_AT_ONCE = 2  # pictures that fill a screen: they do not wait for those below them
PROBLEM = "problem"  # the element that says why there is no answer


class Answers:
    """Answers that pass Gradio's events and its updates of widgets by: they take longer than all that is computed.

    Args:
        presenter: knows the answers.
    """

    def __init__(self, presenter: Presenter):
        self.presenter = presenter

    @property
    def functions(self) -> list[Callable]:
        """For the browser to call; Gradio passes what it gives as one list."""

        def answer(asked: list) -> dict[str, Any]:
            return self.answer(*asked)

        return [answer]

    def answer(self, about: str, state: Mapping[str, Any], part: int = 0) -> dict[str, Any]:
        """What a change of the state asks for.

        Args:
            about: "show" for the whole open view and the prediction, "pick" for what of them follows the selection,
                "tune" for the prediction.
            state: anything, as anybody may send it.
            part: 0 for what is seen at once, 1 for the rest of the view.

        Returns:
            `contents`, element id -> what it shows, None where it gives up its place; `more`, whether there is a rest.
        """
        try:
            question, settings = Question.parse(state), GenerationSettings.parse(state)
            shown = {} if part else self.prediction(question, settings)
            if about == "tune":
                return {"contents": shown, "more": False}
            view, pictures = self.view(question, about == "show")
        except ValueError as error:
            return {"contents": {PROBLEM: str(error)}, "more": False}
        names = list(pictures)
        now = names[SEEN_AT_ONCE:] if part else names[:SEEN_AT_ONCE]
        drawn = {name: packed(pictures[name]()) for name in now}
        if part:
            return {"contents": drawn, "more": False}
        return {"contents": {PROBLEM: "", **shown, **view, **drawn}, "more": len(names) > SEEN_AT_ONCE}

    def prediction(self, question: Question, settings: GenerationSettings) -> dict[str, Any]:
        picture, words = self.presenter.next_token(question, settings)
        return {"next-token": packed(picture), "next-token-words": words}

    def view(self, question: Question, newly: bool) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
        """The open view's texts and choosers, and how each of its pictures is drawn."""
        view, content = self.presenter.view(question, newly)
        texts = {
            f"{view.name}-words": content.words,
            f"{view.name}-formula": content.formula,
            f"{view.name}-choosers": Choosers.pack(content.choices),
        }
        return texts, {f"{view.name}-{panel}": draw for panel, draw in content.pictures.items()}


def packed(picture: Any) -> Any:
    """A picture as its widget takes it."""
    if picture is None:
        return None
    return HeadGrid.pack(picture) if isinstance(picture, SmallMultiples) else Figure.pack(picture)
