"""The page's modules without a browser: unit tests in Node, and type checks by TypeScript."""

import json
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest

from explorer.web.assets import INLINE_FOLDER, WEB, import_expression, write_static_files

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")  # part of Playwright


@pytest.fixture(scope="module")
def script_folder(tmp_path_factory) -> Path:
    """Folder with all modules and their tests, laid out as in the source."""
    script_folder = tmp_path_factory.mktemp("scripts")
    (script_folder / "package.json").write_text(json.dumps({"type": "module"}), encoding="utf-8")
    write_static_files(script_folder / WEB.relative_to(ROOT))
    shutil.copytree(INLINE_FOLDER, script_folder / INLINE_FOLDER.relative_to(ROOT))
    shutil.copytree(HERE / "static", script_folder / HERE.relative_to(ROOT) / "static")
    return script_folder


@pytest.mark.parametrize("tests", sorted((HERE / "static").glob("*.test.js")), ids=lambda path: path.name)
def test_javascript_unit_tests_pass(script_folder, tests):
    run = subprocess.run(
        [NODE, "--test-force-exit", script_folder / tests.relative_to(ROOT)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_missing_module_is_reported():
    browser_globals = (
        "document = { baseURI: 'file:///nowhere/' }; dispatchEvent = ({ type, detail }) => console.log(type, detail)"
    )
    program = (
        f"{browser_globals}; {import_expression('static/page.js')}.then(() "
        f"=> console.log('came'), () => console.log('failed'))"
    )
    run = subprocess.run([NODE, "--eval", program], capture_output=True, encoding="utf-8", timeout=120)
    assert run.stdout.split() == ["explorer:missing", "static/page.js", "failed"], run.stderr


def test_typescript_finds_no_type_errors():
    compiler = shutil.which("tsc")
    if not compiler:
        pytest.skip("needs TypeScript: npm install --global typescript")
    run = subprocess.run([compiler, "--project", WEB / "jsconfig.json"], capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr
