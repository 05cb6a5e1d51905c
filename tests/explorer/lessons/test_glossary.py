"""Every term of art has an entry, and every entry tells this run's own numbers."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.explain.notation import number
from explorer.language import CATALOGUES, speaking
from explorer.lessons.glossary import ENTRIES, ENTRY_NAMED, Look, forms
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.specimens import STYLES, models, tokenizer, trace_of

HERE = Path(__file__).parent
WORD = re.compile(r"[A-Za-z][A-Za-z_\-]*[A-Za-z]|[^\x00-\x7f]")
FIELD = re.compile(r"%?\{[^}]*\}|<[^>]*>|[\u4e00-\u9fff，。：；、“”（）？]")


def words_of(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(FIELD.sub(" ", text))}


def test_a_word_is_either_everyday_or_explained():
    """A new word goes into the glossary, or, where everybody knows it, into everyday.txt."""
    everyday = set((HERE / "everyday.txt").read_text(encoding="utf-8").split())
    explained = {word for entry in ENTRIES for form in entry.forms for word in words_of(form)}
    with (CATALOGUES / "explorer.pot").open("rb") as file:
        messages = [message.id for message in read_po(file) if message.id]
    texts = [text for message in messages for text in ([message] if isinstance(message, str) else message)]
    said = {word for text in texts for word in words_of(text)}
    assert said - everyday - explained == set()
    assert everyday - said == set()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("length", [1, 12])
def test_every_entry_is_told_of_every_model(style, length):
    trace = trace_of(style, length)
    look = Look(
        trace, Selection(layer=1, head=1, query=length - 1, key=0, neuron=3).within(trace), GenerationSettings()
    )
    for entry in ENTRIES:
        told = entry.told(look)
        assert told.startswith(entry.meaning) and told.endswith(".") and len(told) > len(entry.meaning) + 5
        assert "{" not in told and "nan" not in told, entry.name


def test_entries_have_the_runs_own_numbers():
    """All but a few, which say that this run or this model has none."""
    trace = trace_of("rope")
    comparison = Comparison.of(trace, capture(models()["rope"], trace.token_ids[2:], tokenizer=tokenizer()))
    selections = (Selection(layer=1, query=q, neuron=q).within(trace) for q in (5, 9))
    looks = [Look(trace, selection, GenerationSettings(), comparison) for selection in selections]
    constant = {entry.name for entry in ENTRIES if entry.here(looks[0]) == entry.here(looks[1])}
    assert all(
        re.search(r"\d", entry.here(look)) for entry in ENTRIES for look in looks if entry.name not in NUMBERLESS
    )
    assert len(constant) < len(ENTRIES) / 2


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", ["previous_token", "self"])
def test_a_head_score_is_the_one_that_the_map_of_heads_shows(name, hidden):
    trace = trace_of("rope", 12)
    asked = Selection(layer=0, head=2, head_score=name, first_token="hidden" if hidden else "shown")
    told = ENTRY_NAMED["head score"].told(Look(trace, asked.within(trace), GenerationSettings()))
    value, does = number(head_scores(trace, name, hidden)[0, 2]), HEAD_SCORES[name]
    assert told.endswith(f"That of layer 0 head 2 is {value} here: how much it {does}.")


NUMBERLESS = {"bias", "cap", "sinusoidal", "logit lens", "greedy", "beam", "induction"}


def test_forms_lead_to_one_entry_each():
    all_forms = [form for entry in ENTRIES for form in entry.forms]
    assert len(all_forms) == len(set(all_forms)) and set(forms()) == set(all_forms)
    with speaking("zh-CN"):
        assert forms()["词元"] == "token" and "tokens" not in forms()


def table() -> str:
    """The README's, made of the glossary."""
    return "\n".join(
        ["| word | meaning |", "| --- | --- |", *(f"| {each.name} | {each.meaning} |" for each in ENTRIES)]
    )


def test_the_readme_has_the_table():
    readme = (CATALOGUES.parents[1] / "README.md").read_text(encoding="utf-8")
    assert table() in readme
