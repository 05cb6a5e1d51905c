"""The page's modules without a browser: unit tests in Node, and types by TypeScript."""

import json
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest

from explorer.web.assets import INLINE_FOLDER, WEB, import_expression, write_static_files

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")  # Playwright brings it


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """Folder with all modules and their tests, laid out as in the source."""
    tree = tmp_path_factory.mktemp("scripts")
    (tree / "package.json").write_text(json.dumps({"type": "module"}), encoding="utf-8")
    write_static_files(tree / WEB.relative_to(ROOT))
    shutil.copytree(INLINE_FOLDER, tree / INLINE_FOLDER.relative_to(ROOT))
    shutil.copytree(HERE / "static", tree / HERE.relative_to(ROOT) / "static")
    return tree


@pytest.mark.parametrize("tests", sorted((HERE / "static").glob("*.test.js")), ids=lambda path: path.name)
def test_functions_do_what_they_say(tree, tests):
    run = subprocess.run(
        [NODE, "--test-force-exit", tree / tests.relative_to(ROOT)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_module_that_does_not_come_is_told_of():
    browser_globals = (
        "document = { baseURI: 'file:///nowhere/' }; dispatchEvent = ({ type, detail }) => console.log(type, detail)"
    )
    program = (
        f"{browser_globals}; {import_expression('static/page.js')}.then(() "
        f"=> console.log('came'), () => console.log('failed'))"
    )
    run = subprocess.run([NODE, "--eval", program], capture_output=True, encoding="utf-8", timeout=120)
    assert run.stdout.split() == ["explorer:missing", "static/page.js", "failed"], run.stderr


def test_types_fit():
    compiler = shutil.which("tsc")
    if not compiler:
        pytest.skip("needs TypeScript: npm install --global typescript")
    run = subprocess.run([compiler, "--project", WEB / "jsconfig.json"], capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr
