"""The template has what the code says, and catalogues have what the template has."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest
from babel.messages import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po

from explorer.language import CATALOGUES, LANGUAGES
from tests import unmarked
from tests.unmarked import fields, messages

MARKUP = re.compile(r"%\{[^}]*\}|\{[^{}]*\}|</?\w+>|^\s|\s$|\n")


def stale(folder: Path) -> list[str]:
    """What is wrong with the catalogues of a folder, which has their template."""
    template, found = read(folder / "explorer.pot", read_po), []
    for path in sorted(folder.glob("*/LC_MESSAGES/explorer.po")):
        catalogue = read(path, read_po)
        said = {message: translation for message, translation in catalogue.items() if any(translation)}
        found += [f"{path}: not in it: {message}" for message in template if message not in catalogue]
        found += [f"{path}: not in the code: {message}" for message in catalogue if message not in template]
        found += [f"{path}: other names: {message}" for message in said if names(said[message]) - names(message)]
        if read(path.with_suffix(".mo"), read_mo) != said:
            found.append(f"{path}: compile it")
    return found


def read(path: Path, how: Callable[[BinaryIO], Catalog]) -> dict[str | tuple[str, ...], str | tuple[str, ...]]:
    """Message -> its translation, "" where there is none yet or a doubtful (fuzzy) one."""
    with path.open("rb") as file:
        messages = [message for message in how(file) if message.id]
    return {together(message.id): "" if message.fuzzy else together(message.string) for message in messages}


def together(forms: str | Sequence[str]) -> str | tuple[str, ...]:
    """A message's forms, which Babel has as a list in compiled catalogues."""
    return forms if isinstance(forms, str) else tuple(forms)


def names(message: str | tuple[str, ...]) -> set[str]:
    return {name for form in ([message] if isinstance(message, str) else message) for name in fields(form)}


def test_the_template_is_what_the_code_says(pybabel, tmp_path):
    """Else renew it: explorer/README.md has the line."""
    pybabel("extract", CATALOGUES.parents[1], "-o", str(tmp_path / "now.pot"))
    assert (tmp_path / "now.pot").read_text("utf-8") == (CATALOGUES / "explorer.pot").read_text("utf-8")


@pytest.mark.exhaustive
def test_the_template_has_every_mark():
    """Babel passes over a mark that stands in another call among a mark's own values."""
    known = set(read(CATALOGUES / "explorer.pot", read_po))
    known |= {message[0] for message in known if isinstance(message, tuple)}  # a singular can stand alone elsewhere
    marked = {path: messages(path.read_text(encoding="utf-8")) for path in CATALOGUES.parent.rglob("*.py")}
    assert {path: texts - known for path, texts in marked.items() if texts - known} == {}


def test_the_template_has_what_is_wrong_with_a_model(monkeypatch):
    monkeypatch.setattr(unmarked, "MARKS", {"ModelError": 1, "CheckpointError": 1, "Note": 1})
    known = set(read(CATALOGUES / "explorer.pot", read_po))
    sources = [path.read_text(encoding="utf-8") for path in (CATALOGUES.parents[1] / "model").rglob("*.py")]
    assert [call for source in sources for call in unmarked.misused(source)] == []
    told = set().union(*map(messages, sources))
    assert len(told) > 30 and told <= known


def test_no_catalogue_is_stale():
    assert stale(CATALOGUES) == []


def test_catalogues_are_complete():
    catalogues = {path: read(path, read_po) for path in CATALOGUES.glob("*/LC_MESSAGES/explorer.po")}
    assert len(catalogues) == len(LANGUAGES) - 1
    assert {
        path: [m for m, told in each.items() if not any(told)] for path, each in catalogues.items()
    } == dict.fromkeys(catalogues, [])


def test_translations_keep_the_names_and_the_tags_of_their_messages():
    """Plotly fills `%{x}` where it draws, and what stands in <extra> apart."""
    for path in CATALOGUES.glob("*/LC_MESSAGES/explorer.po"):
        for message, told in read(path, read_po).items():
            forms, texts = ([each] if isinstance(each, str) else list(each) for each in (message, told))
            for text in texts:
                assert any(sorted(MARKUP.findall(form)) == sorted(MARKUP.findall(text)) for form in forms), message


@pytest.mark.parametrize(
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
def test_what_is_stale_is_found(tmp_path, template, messages, compiled, told):
    folder = tmp_path / "eo" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    write(tmp_path / "explorer.pot", dict.fromkeys(template, ""), write_po)
    write(folder / "explorer.po", messages, write_po)
    write(folder / "explorer.mo", compiled, write_mo)
    assert [problem.partition(": ")[2] for problem in stale(tmp_path)] == told


def write(path: Path, messages: dict[str, str], how: Callable[[BinaryIO, Catalog], None]):
    catalogue = Catalog(locale="eo")
    for message, translation in messages.items():
        catalogue.add(message, translation)
    with path.open("wb") as file:
        how(file, catalogue)
