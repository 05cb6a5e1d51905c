"""The page's scripts and styles as they are served."""

import json
import re
from pathlib import Path

from explorer.translations import ENGLISH, LANGUAGES
from explorer.views.style import DARK
from explorer.web import assets
from explorer.web.shared_constants import ABOUT, js_constants

MODULES = assets.js_module_paths(assets.WEB)
SCRIPTS = [*MODULES, *(path.relative_to(assets.WEB).as_posix() for path in assets.INLINE_FOLDER.iterdir())]
OTHER_LANGUAGES = {*LANGUAGES} - {ENGLISH}
MESSAGES = {f"static/messages.{language}.js" for language in OTHER_LANGUAGES}
GENERATED = {"static/shared_constants.js", *MESSAGES}
IMPORT = r"^(?:import|export)\b[^;]*?\bfrom \"([^\"]+)\";"


def find_imports(module: Path) -> list[str]:
    return re.findall(IMPORT, module.read_text(encoding="utf-8"), re.MULTILINE)


def read_source(name: str) -> str:
    return (assets.WEB / name).read_text(encoding="utf-8")


def test_no_module_makes_markup_from_text():
    """Except for a view's markup, which Python builds from its own texts only (layout.py)."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextual.*|\beval\(|new Function"
    calls = [(name, call) for name in SCRIPTS for call in re.findall(forbidden, read_source(name))]
    assert calls == [("static/page.js", "createContextualFragment(markup);")]


def test_every_module_is_type_checked_and_short():
    assert [name for name in SCRIPTS if not read_source(name).startswith("// @ts-check\n")] == []
    assert [name for name in SCRIPTS if read_source(name).count("\n") > 600] == []


def test_only_script_api_is_global():
    written = r"\b(?:window|globalThis)\.(\w+) = "
    names = [(name, written_name) for name in SCRIPTS for written_name in re.findall(written, read_source(name))]
    assert names == [("static/page.js", "explorer")]


def test_no_style_of_outer_element_depends_on_content():
    """With `:has` on an element around the figures, a browser restyles the whole page at every change.

    With all tabs open, each text that Plotly measured took 1 ms instead of 0.03 ms.
    """
    whole = r"\bbody|html|:root|gradio-app|\.gradio-container|#columns|#views|\.tabitem|\[data-depth|\[data-view|&"
    whole_by_a_part = re.compile(rf"(?:{whole})[^\s>+~,{{]*:has\(")
    assert all(map(whole_by_a_part.search, ("body:has(#sheet) {", "  &:not(:has(.open)) .part {")))
    sheets = {path.name: path.read_text(encoding="utf-8") for path in assets.WEB.rglob("*.css")}
    assert "page.css" in sheets
    assert [name for name, text in sheets.items() if whole_by_a_part.search(text)] == []


def test_modules_are_served_with_working_relative_imports():
    folder = assets.static_folder()
    assert set(assets.js_module_paths(folder)) == {*MODULES, *GENERATED}
    for name in MODULES:
        assert (folder / name).read_text(encoding="utf-8") == read_source(name)
        for imported in find_imports(folder / name):
            assert imported.startswith(".") and ((folder / name).parent / imported).exists(), (name, imported)


def test_modules_are_preloaded_except_messages_and_lazy_ones():
    links = re.findall(r'<link rel="modulepreload" href="([^"]+)"', assets.head_tags())
    (entry,) = re.findall(r'<script type="module" src="([^"]+)"', assets.head_tags())
    assert entry == assets.static_url("static/page.js")
    later = {name for name in MODULES if name.startswith(assets.LAZY_PREFIXES)}
    assert {prefix for prefix in assets.LAZY_PREFIXES if any(name.startswith(prefix) for name in later)} == {
        *assets.LAZY_PREFIXES
    }
    assert links == [assets.static_url(name) for name in sorted({*MODULES, *GENERATED} - MESSAGES - later)]


def test_preloaded_modules_import_no_lazy_modules():
    """The browser would discover the import only after reading its importer."""
    later = (assets.MESSAGES_PREFIX, *assets.LAZY_PREFIXES)
    folder = assets.static_folder()
    for name in MODULES:
        if not name.startswith(later):
            imported = [(folder / name).parent / path for path in find_imports(folder / name)]
            names = [path.resolve().relative_to(folder.resolve()).as_posix() for path in imported]
            assert [other for other in names if other.startswith(later)] == [], name


def test_urls_are_relative():
    """The app must work below any path."""
    addresses = re.findall(r'(?:src|href)="([^"]+)"', assets.head_tags())
    addresses += re.findall(r'new URL\("([^"]+)", document\.baseURI\)', assets.event_script("page.start()"))
    folders = ("explorer/static/", "static/fonts/")
    assert len(addresses) > 10 and all(address.startswith(folders) for address in addresses)


def test_url_of_static_files_depends_on_content(monkeypatch, tmp_path):
    """Browsers cache them permanently."""
    (tmp_path / "page.js").write_text("1;", encoding="utf-8")
    monkeypatch.setattr(assets, "static_folder", lambda: tmp_path)
    paths = [assets.static_path.__wrapped__(), assets.static_path.__wrapped__()]
    (tmp_path / "page.js").write_text("2;", encoding="utf-8")
    paths.append(assets.static_path.__wrapped__())
    assert paths[0] == paths[1] != paths[2]


def test_python_constants_are_exported():
    module = (assets.static_folder() / "static" / "shared_constants.js").read_text(encoding="utf-8")
    assert f"export const ABOUT = {json.dumps(ABOUT)};" in module
    declared = re.findall(
        r"export const (\w+):", (assets.WEB / "static" / "shared_constants.d.ts").read_text(encoding="utf-8")
    )
    assert set(declared) == {*js_constants(), "THEMES"} == set(re.findall(r"export const (\w+) =", module))


def test_all_languages_are_exported(monkeypatch, tmp_path):
    monkeypatch.setattr(assets.translations, "messages_for_js", lambda language: {"a": f"“{language}”\u2028</script>"})
    assets.write_static_files(tmp_path)
    for language in OTHER_LANGUAGES:
        module = (tmp_path / "static" / f"messages.{language}.js").read_text(encoding="utf-8")
        messages = json.loads(module.removeprefix("export const MESSAGES = ").rstrip(";\n"))
        assert messages == {"a": f"“{language}”\u2028</script>"}


def test_figures_have_theme_colours():
    module = (assets.static_folder() / "static" / "shared_constants.js").read_text(encoding="utf-8")
    themes = json.loads(re.search("^export const THEMES = (.+);$", module, re.MULTILINE)[1])
    assert themes["dark"]["sequential"] == list(DARK.sequential)
    assert themes["dark"]["template"]["layout"]["font"]["color"] == DARK.text


def test_plotly_bundle_leaves_gradio_copy_alone():
    source = (assets.static_folder() / assets.PLOTLY).read_text(encoding="utf-8")
    assert "plotly.js v" in source[:1000] and "MIT license" in source[:1000]
    assert source.count("window.ExplorerPlotly=") == 1 and not re.search(r"window\.Plotly\s*=", source)
