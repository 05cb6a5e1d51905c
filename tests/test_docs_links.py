"""README, CONTRIBUTING, the documents and the model cards: links, sizes, pictures and the paths that they name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, *sorted((ROOT / "checkpoints").glob("*/README.md")), ROOT / "tests" / "benchmarks" / "README.md"]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
MAX_README_BYTES, MAX_GUIDE_BYTES, MAX_PICTURE_BYTES = 10_000, 15_000, 300_000
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|js|toml|txt))`")
BASES = [ROOT, ROOT / "explorer", ROOT / "explorer" / "web" / "static", ROOT / "explorer" / "views" / "overview"]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def read_text(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return re.sub(r"^(`{3,})[^`].*?^\1$|^```$.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def heading_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", read_text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_relative_link_resolves(page):
    broken = []
    for link in LINK.findall(read_text(page)):
        path, _, anchor = link.partition("#")
        if link.startswith(("https://", "http://")):
            continue
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in heading_anchors(target):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_named_path_exists(page):
    paths = [path for path in PATH.findall(read_text(ROOT / page)) if "my_" not in path and "my-" not in path]
    assert len(paths) > 15
    assert [path for path in paths if not any((base / path).exists() for base in BASES)] == []


def test_readme_is_short():
    body = (ROOT / "README.md").read_text("utf-8").split("---\n", 2)[2]
    assert len(body.encode()) <= MAX_README_BYTES


@pytest.mark.parametrize("page", GUIDES[1:], ids=lambda path: path.name)
def test_every_document_is_short(page):
    assert page.stat().st_size <= MAX_GUIDE_BYTES


def test_readme_links_every_document():
    links = set(LINK.findall((ROOT / "README.md").read_text("utf-8")))
    assert {path.relative_to(ROOT).as_posix() for path in GUIDES[1:]} - links == set()


def test_pictures_are_small_and_shown():
    assert [path.name for path in PICTURES if path.stat().st_size > MAX_PICTURE_BYTES] == []
    linked_names = {
        Path(link).name for page in GUIDES for link in LINK.findall(read_text(page)) if link.endswith(".png")
    }
    assert {path.name for path in PICTURES} == linked_names


def test_every_picture_has_alt_text():
    images = [alt for page in GUIDES for alt in re.findall(r"!\[([^\]]*)\]\(", read_text(page))]
    assert [alt for alt in images if len(alt) < 20] == []
