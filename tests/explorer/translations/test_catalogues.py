"""Message catalogues: the template has all messages of the code, and each catalogue all of the template."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest
from babel.messages import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po

from explorer.translations import CATALOGUES, LANGUAGES
from tests import untranslated
from tests.subtest_loops import subtest_each
from tests.untranslated import fields, marked_messages

SCRIPT_MESSAGE = re.compile(r'(?<![\w.])(?:_|ngettext)\(\s*("(?:[^"\\]|\\.)*")')
MARKUP = re.compile(r"%\{[^}]*\}|\{[^{}]*\}|</?\w+>|^\s|\s$|\n")


def find_problems(folder: Path, template_path: Path) -> list[str]:
    """Return the problems of a folder's catalogues, compared with a template."""
    template, problems = read_catalogue(template_path, read_po), []
    for path in sorted(folder.glob("*/LC_MESSAGES/explorer.po")):
        catalogue = read_catalogue(path, read_po)
        translated = {message: translation for message, translation in catalogue.items() if any(translation)}
        problems += [f"{path}: not in it: {message}" for message in template if message not in catalogue]
        problems += [f"{path}: not in the code: {message}" for message in catalogue if message not in template]
        problems += [
            f"{path}: other names: {message}"
            for message in translated
            if field_names(translated[message]) - field_names(message)
        ]
        if read_catalogue(path.with_suffix(".mo"), read_mo) != translated:
            problems.append(f"{path}: compile it")
    return problems


def read_catalogue(
    path: Path, parse_file: Callable[[BinaryIO], Catalog]
) -> dict[str | tuple[str, ...], str | tuple[str, ...]]:
    """Read a catalogue as {message: translation}, with "" for a missing or fuzzy translation."""
    with path.open("rb") as file:
        messages = [message for message in parse_file(file) if message.id]
    return {hashable_forms(message.id): "" if message.fuzzy else hashable_forms(message.string) for message in messages}


def hashable_forms(forms: str | Sequence[str]) -> str | tuple[str, ...]:
    """Return a message's forms as a text or a tuple; Babel has lists in compiled catalogues."""
    return forms if isinstance(forms, str) else tuple(forms)


def field_names(message: str | tuple[str, ...]) -> set[str]:
    return {name for form in ([message] if isinstance(message, str) else message) for name in fields(form)}


@pytest.mark.exhaustive
def test_template_has_every_marked_message(template):
    """Babel misses marks that are nested in the arguments of another mark."""
    extracted = set(read_catalogue(template, read_po))
    extracted |= {
        message[0] for message in extracted if isinstance(message, tuple)
    }  # a singular can also be a message without plural
    marked = {path: marked_messages(path.read_text(encoding="utf-8")) for path in CATALOGUES.parent.rglob("*.py")}
    assert {path: texts - extracted for path, texts in marked.items() if texts - extracted} == {}


def test_template_has_model_errors(template, monkeypatch):
    monkeypatch.setattr(untranslated, "MARKS", {"ModelError": 1, "CheckpointError": 1, "LoadingNote": 1})
    extracted = set(read_catalogue(template, read_po))
    sources = [path.read_text(encoding="utf-8") for path in (CATALOGUES.parents[1] / "model").rglob("*.py")]
    assert [call for source in sources for call in untranslated.find_misused_marks(source)] == []
    marked = set().union(*map(marked_messages, sources))
    assert len(marked) > 30 and marked <= extracted


def test_catalogues_are_up_to_date(template):
    """If this fails, renew the catalogues with the commands in CONTRIBUTING.md."""
    assert find_problems(CATALOGUES, template) == []


def test_catalogues_are_complete():
    catalogues = {path: read_catalogue(path, read_po) for path in CATALOGUES.glob("*/LC_MESSAGES/explorer.po")}
    assert len(catalogues) == len(LANGUAGES) - 1
    assert {
        path: [m for m, translation in catalogue.items() if not any(translation)]
        for path, catalogue in catalogues.items()
    } == dict.fromkeys(catalogues, [])


def test_translations_keep_fields_and_tags():
    """Plotly fills in `%{x}` when it draws, and shows text in <extra> separately."""
    for path in CATALOGUES.glob("*/LC_MESSAGES/explorer.po"):
        for message, translation in read_catalogue(path, read_po).items():
            forms, texts = ([value] if isinstance(value, str) else list(value) for value in (message, translation))
            for text in texts:
                assert any(sorted(MARKUP.findall(form)) == sorted(MARKUP.findall(text)) for form in forms), message


@subtest_each(
    ("template", "messages", "compiled", "told"),
    [
        (["{n} tokens"], {"{n} tokens": "{n} ĵetonoj"}, {"{n} tokens": "{n} ĵetonoj"}, []),
        (["a", "b"], {"a": "A"}, {"a": "A"}, ["not in it: b"]),
        (["a"], {"a": "A", "b": "B"}, {"a": "A", "b": "B"}, ["not in the code: b"]),
        (["{n} tokens"], {"{n} tokens": "{m} ĵetonoj"}, {"{n} tokens": "{m} ĵetonoj"}, ["other names: {n} tokens"]),
        (["a"], {"a": "A"}, {"a": "another"}, ["compile it"]),
        (["a"], {"a": "A"}, {}, ["compile it"]),
        (["a"], {"a": ""}, {}, []),
    ],
)
def test_stale_catalogues_are_detected(tmp_path, template, messages, compiled, told):
    folder = tmp_path / "eo" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    write_catalogue(tmp_path / "explorer.pot", dict.fromkeys(template, ""), write_po)
    write_catalogue(folder / "explorer.po", messages, write_po)
    write_catalogue(folder / "explorer.mo", compiled, write_mo)
    assert [problem.partition(": ")[2] for problem in find_problems(tmp_path, tmp_path / "explorer.pot")] == told


def write_catalogue(path: Path, messages: dict[str, str], write_file: Callable[[BinaryIO, Catalog], None]):
    catalogue = Catalog(locale="eo")
    for message, translation in messages.items():
        catalogue.add(message, translation)
    with path.open("wb") as file:
        write_file(file, catalogue)


def test_every_marked_script_message_is_extracted():
    path = next(CATALOGUES.glob("*/LC_MESSAGES/explorer.po"))
    extracted = {
        form for forms in read_catalogue(path, read_po) for form in ([forms] if isinstance(forms, str) else forms)
    }
    scripts = (CATALOGUES.parent / "web").rglob("*.js")
    marked = [json.loads(text) for script in scripts for text in SCRIPT_MESSAGE.findall(script.read_text("utf-8"))]
    assert len(marked) > 500
    assert not set(marked) - extracted  # Babel misses one within another's arguments
