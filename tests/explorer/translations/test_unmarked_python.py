"""All sentences in the Python code are marked for translation."""

from pathlib import Path

from explorer.analysis.steering import PROMPT_LISTS
from explorer.lessons.example_prompts import EXAMPLES, GUESS_EXAMPLES, PROMPT_PAIRS
from explorer.web.key_value_stores import WRITE_SCRIPT
from explorer.web.page import BAR_CSS
from explorer.web.static_page import HTML
from tests.subtest_loops import subtest_each
from tests.untranslated import find_misused_marks, find_unmarked

EXPLORER = Path(__file__).parents[3] / "explorer"
# Texts that need no translation, by file, with the reason.
EXCEPTIONS = {
    "architecture/summary.py": {
        "GELU (tanh)": "a name",
        "chat template": "from describe.py",
    },
    "analysis/attention.py": {"qᵢ kᵢ / {}": "a formula"},
    "lessons/glossary/__init__.py": {"residual stream": "a key"},
    "web/static_page.py": {HTML: "the page without a server is in English"},
    "lessons/quantities.py": dict.fromkeys(
        ("token embedding", "position embedding", "query and key norms"), "rows of a table"
    ),
    "lessons/worked_examples.py": dict.fromkeys(("up, W₃x", "a · cos − b · sin", "a · sin + b · cos"), "a formula"),
    "lessons/example_prompts.py": {
        **dict.fromkeys((*EXAMPLES.values(), *GUESS_EXAMPLES), "the model reads it"),
        **{text: "the model reads it" for pair in PROMPT_PAIRS for text in (pair.clean, pair.corrupted)},
    },
    "diagnosis/weights_file.py": dict.fromkeys(
        (r"GLOBAL (\S+) whose module", "Unsupported operand", "WeightsUnpickler error: (.*)"), "torch's words"
    ),
    "analysis/steering.py": {
        text: "the model reads it" for each in PROMPT_LISTS for text in (*each.prompts, *each.others, *each.examples)
    },
    "views/attention/__init__.py": {"return torch.softmax(scores + penalty": "code"},
    "views/kv_cache.py": {"keys, values = single.narrow(": "code"},
    "views/attention/patterns.py": {"middle left": "Plotly's", "middle right": "Plotly's"},
    "views/overview/__init__.py": {"top left": "Plotly's", "top right": "Plotly's"},
    "views/style.py": dict.fromkeys(
        ("IBM Plex Sans", "Segoe UI", "Noto Sans", "IBM Plex Mono", "SF Mono", "DejaVu Sans Mono"), "a font"
    ),
    "views/tokens/__init__.py": {"top center": "Plotly's"},
    "views/training.py": {"middle right": "Plotly's"},
    "tracing/model_registry.py": dict.fromkeys(
        (
            "{} is asked of the model, and ",
            "{}the model of this trace is gone: a trace holds none, so keep the model as long as its weights are read, "
            "or load it and capture again",
        ),
        "for who wrote the program",
    ),
    "tracing/run_files.py": {"a run of TransformerLM Explorer, 1": "a file's mark"},
    "web/browser_api/python_script.py": dict.fromkeys(
        (
            "import explorer",
            "from explorer.run_figures import RunComparison",
            "RunComparison.from_traces(run, other, {})",
            "figure = {}",
            "numbers = {}  ",
            "[trace.{} for trace in figure.data]",
        ),
        "code",
    ),
    "diagnosis/command_line.py": dict.fromkeys(
        (
            "JSON file: the module's weight names to ours",
            "More on each: docs/your-module.md.",
            "arguments of the module and of the reference",
            "the module's vocabulary: a file, or its name",
            "the module's weights: a file or folder",
        ),
        "told on the terminal",
    ),
    "web/assets.py": {
        'dispatchEvent(new CustomEvent("explorer:missing", { detail: "{}" }))': "script",
        'import(new URL("{}", document.baseURI)).catch((error) => { {}; throw error; })': "script",
        "async ({}) => { const page = await {}; return {}; }": "script",
        "export const {} = {};\n": "script",
    },
    "web/user_messages.py": {
        "can't allocate memory": "as torch says it",
        "out of memory": "as torch says it",
    },
    "web/middleware.py": {
        "'self' data: blob:": "a policy",
        "public, max-age=31536000, immutable": "a header",
    },
    "web/public_api.py": {
        "{}, gradio {}, torch {}, python {}": "versions",
        "{}, which does not answer": "for who looks after the server",
    },
    "web/layout.py": {
        "TransformerLM Explorer": "a name",
        "{}({ props, watch, emit: { {} } })": "script",
    },
    "web/page.py": {BAR_CSS: "style", "page.changeSettings({ {} }, true)": "script"},
    "web/key_value_stores.py": {
        WRITE_SCRIPT: "a script of Redis",
        "--store redis://… needs the Python package redis: pip install redis": "told on the terminal",
    },
}


# Command line and Python API are in English, like Python's own errors.
IN_ENGLISH = {"cli.py", "cli_options.py", "python_api.py", "run_figures.py", "serving.py"}
PAGE_SOURCES = [path for path in EXPLORER.rglob("*.py") if path.parent != EXPLORER or path.name not in IN_ENGLISH]
SOURCES = {path.relative_to(EXPLORER).as_posix(): path.read_text(encoding="utf-8") for path in PAGE_SOURCES}


def test_every_sentence_is_marked():
    unmarked_by_file = {name: set(find_unmarked(text)) for name, text in SOURCES.items()}
    assert {name: texts for name, texts in unmarked_by_file.items() if texts} == {
        k: set(v) for k, v in EXCEPTIONS.items()
    }


def test_marks_contain_whole_sentences_with_named_values():
    problems_by_file = {name: find_misused_marks(text) for name, text in SOURCES.items()}
    assert {name: wrong for name, wrong in problems_by_file.items() if wrong} == {}


@subtest_each(
    "line",
    [
        'said = "two words"',
        'said = f"{n} tokens"',
        'said = "{n} tokens".format(n=n)',
        'raise UserError("no such token")',
        'tell(f"at {place}", quickly=True)',
        'html = "<p>two words</p>"',
        """html = '<i title="two words"></i>'""",
        '"two words" if n else _("two words")',
    ],
)
def test_unmarked_sentence_is_found(line):
    assert find_unmarked(line)


@subtest_each(
    "line",
    [
        '"""Two words."""',
        'said = _("two words")',
        'said = look_up(N_("two words"))',
        'said = ngettext("{count} token", "{count} tokens", n)',
        'LOG.info("two words")',
        'SourceLine("model/lm.py", "return two words")',
        'raise ValueError("two words")',
        'name = f"blocks.{layer}.attn.z"',
        """html = '<div class="two words" role="group"></div>'""",
        'def f(x: "Trace | None") -> "Trace | None": ...',
    ],
)
def test_internal_text_needs_no_mark(line):
    assert find_unmarked(line) == []


@subtest_each(
    "line",
    [
        '_(f"{n} tokens")',
        "_(message)",
        "N_(message)",
        '_("")',
        '_("a " + b)',
        '_("a token") + "s"',
        """f"{_('a token')}s" """,
        '_("{n} tokens", count=n)',
        'ngettext("{count} token", "{count} {kind} tokens", n)',
        'ngettext("{count} tokens", "{count} tokens", n)',
        "from explorer.translations import _\nlm, _ = model()",
        "from explorer.translations import _\nfor _ in range(3): pass",
        "from explorer.translations import _\ncall(lambda _: 1)",
    ],
)
def test_misused_mark_is_found(line):
    assert find_misused_marks(line)
