"""Views of the user's own in the page, loaded from the command line."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
FAILING = """
from explorer.views import Panel, View

def fail(trace, selection):
    raise ValueError("<img src=x onerror=alert(1)>")

VIEW = View("failing", "Failing", (Panel("first", "First", fail), Panel("second", "Second", fail)))
"""


@pytest.fixture
def served_views(tmp_path) -> Iterator[str]:
    """URL of an app with the view of docs/views.md, a view whose figures fail, and a view that fails to load."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "views.md").read_text("utf-8"), re.DOTALL)
    sources = {"my_view.py": example, "failing.py": FAILING, "<i>.py": "\nraise ValueError('<b>broken</b>')\n"}
    command = [sys.executable, "-u", "app.py"]
    for name, source in sources.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
        command += ["--views", str(tmp_path / name)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with subprocess.Popen([*command, "--port", port], cwd=ROOT, stdout=subprocess.PIPE, text=True) as app:
        assert any("Running on local URL" in line for line in app.stdout)
        yield f"http://127.0.0.1:{port}/"
        app.terminate()


def test_user_view_is_drawn_and_its_errors_are_escaped(open_new_page, served_views):
    person = open_new_page(served_views).open(
        "vector_norms", text="Once upon a time", vector="q", layer=2, unfolded="all"
    )
    plot = person.page.locator("#vector_norms-norms .plot")
    expect(plot.locator(".heatmaplayer image")).to_be_visible()
    vector = person.page.locator("#vector_norms-choosers [data-field=vector]")
    expect(vector).to_have_value("q")
    assert plot.evaluate("(plot) => plot.ariaLabel") == "Norm by head and position"
    before = plot.evaluate("(plot) => plot.calcdata[0][0].z[0][1]")
    with person.wait_for_redraw(plot):
        vector.select_option("v")
    person.expect_selected(view="vector_norms", vector="v")
    assert plot.evaluate("(plot) => plot.calcdata[0][0].z[0][1]") != before
    person.wait_until_idle()
    person.click_cell(plot, 1, 3)
    person.expect_selected(query=1, head=3)

    person.tab("Failing")
    for panel in ("first", "second"):
        expect(person.page.locator(f"#failing-{panel} .instead")).to_have_text(
            "failing.py, line 5: ValueError: <img src=x onerror=alert(1)>"
        )
    person.tab("⚠ <i>.py")
    expect(person.page.get_by_text("<i>.py, line 2: ValueError: <b>broken</b>", exact=True)).to_be_visible()
    person.tab("Attention")
    expect(person.pattern.locator(".heatmaplayer image")).to_be_visible()
