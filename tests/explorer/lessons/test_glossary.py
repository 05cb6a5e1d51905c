"""The glossary: an entry for every technical term, with the run's own numbers."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from docs.make_glossary import GLOSSARY, glossary_markdown
from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.explain.notation import format_number
from explorer.lessons import glossary
from explorer.lessons.glossary import ENTRIES, ENTRY_BY_NAME, GlossaryExampleContext, entry_names_by_form
from explorer.lessons.glossary.glossary_entry import FACTS
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.translations import CATALOGUES, use_locale
from tests.sample_models import STYLES, capture_style, models, tokenizer
from tests.subtest_loops import subtest_each

FOLDER = Path(__file__).parent
WORD = re.compile(r"[A-Za-z][A-Za-z_\-]*[A-Za-z]|[^\x00-\x7f]")
FIELD = re.compile(r"%?\{[^}]*\}|<[^>]*>|[\u4e00-\u9fff，。：；、“”（）？]")


def split_words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(FIELD.sub(" ", text))}


def test_every_page_word_is_everyday_or_explained():
    """Add a new word to the glossary, or an everyday word to everyday.txt."""
    everyday = set((FOLDER / "everyday.txt").read_text(encoding="utf-8").split())
    explained = {word for entry in ENTRIES for form in entry.forms for word in split_words(form)}
    with next(CATALOGUES.glob("*/LC_MESSAGES/explorer.po")).open("rb") as file:
        messages = [message.id for message in read_po(file) if message.id]
    texts = [text for message in messages for text in ([message] if isinstance(message, str) else message)]
    page_words = {word for text in texts for word in split_words(text)}
    assert page_words - everyday - explained == set()
    assert everyday - page_words == set()


@subtest_each("style", STYLES)
@subtest_each("length", [1, 12])
def test_every_entry_is_defined_for_every_model(style, length):
    trace = capture_style(style, length)
    context = GlossaryExampleContext(
        trace, Selection(layer=1, head=1, query=length - 1, key=0, neuron=3).clamp_to_trace(trace), GenerationSettings()
    )
    for entry in ENTRIES:
        text = entry.define(context)
        assert text.startswith(entry.meaning) and text.endswith(".") and len(text) > len(entry.meaning) + 5
        assert "{" not in text and "nan" not in text, entry.name


def test_examples_contain_numbers_of_run():
    """The entries in `NUMBERLESS` say instead that this run or model has none."""
    trace = capture_style("rope")
    comparison = Comparison.from_traces(trace, capture(models()["rope"], trace.token_ids[2:], tokenizer=tokenizer()))
    selections = (Selection(layer=1, query=q, neuron=q).clamp_to_trace(trace) for q in (5, 9))
    contexts = [GlossaryExampleContext(trace, selection, GenerationSettings(), comparison) for selection in selections]
    constant = {
        entry.name for entry in ENTRIES if entry.format_example(contexts[0]) == entry.format_example(contexts[1])
    }
    assert all(
        re.search(r"\d", entry.format_example(context))
        for entry in ENTRIES
        for context in contexts
        if entry.name not in NUMBERLESS
    )
    assert len(constant) < len(ENTRIES) / 2


def test_each_fact_is_named_by_a_sentence():
    sources = Path(glossary.__file__).parent.glob("*_terms.py")
    named = {name for source in sources for name in re.findall(r"\{(\w+)[:}]", source.read_text(encoding="utf-8"))}
    assert named == set(FACTS)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", ["previous_token", "self"])
def test_head_score_entry_matches_head_map(name, hidden):
    trace = capture_style("rope", 12)
    selection = Selection().replace(layer=0, head=2, head_score=name, first_token="hidden" if hidden else "shown")
    definition = ENTRY_BY_NAME["head score"].define(
        GlossaryExampleContext(trace, selection.clamp_to_trace(trace), GenerationSettings())
    )
    value, does = format_number(head_scores(trace, name, hidden)[0, 2]), HEAD_SCORES[name].description
    assert definition.endswith(f"That of layer 0 head 2 is {value} here: how much it {does}.")


NUMBERLESS = {"bias", "cap", "sinusoidal", "logit lens", "greedy", "beam", "induction"}


def test_each_form_belongs_to_one_entry():
    all_forms = [form for entry in ENTRIES for form in entry.forms]
    assert len(all_forms) == len(set(all_forms)) and set(entry_names_by_form()) == set(all_forms)
    with use_locale("zh-CN"):
        assert entry_names_by_form()["词元"] == "token" and "tokens" not in entry_names_by_form()


def test_glossary_document_is_current():
    """If this fails, run `python -m docs.make_glossary`."""
    text = GLOSSARY.read_text(encoding="utf-8")
    assert text == glossary_markdown()
    assert [entry.name for entry in ENTRIES if f"| {entry.name} | {entry.meaning} |" not in text] == []
