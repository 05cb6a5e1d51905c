"""Packages as a course's students keep them in their repositories: each opens by one command."""

import inspect
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import torch

from explorer.diagnosis.command_line import EQUAL, main
from explorer.diagnosis.load_module import UserModule, load_user_module
from explorer.errors import UserError
from tests import course
from tests.course import SIZES, course_model
from tests.subtest_loops import subtest_each

IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])
PROJECT = '[project]\nname = "cs336_basics"\nversion = "1.0.4"\n'
VERSIONED = 'import importlib.metadata\n\n__version__ = importlib.metadata.version("cs336_basics")\n'
IMPORT_LINES = "import math\n\nimport torch\nfrom torch import nn\n\n"
CONFIG = """
@dataclass
class ModelConfig:
    vocab_size: int = 50257
    context_length: int = 256
    d_model: int = 512
    num_layers: int = 4
    num_heads: int = 3
    d_ff: int = 1344
    rope_theta: float = 10000.0
"""
EINOPS_SPLIT = """
    def split(self, x):
        return rearrange(x, "b t (h d) -> b h t d", h=self.num_heads)

    def merge(self, z):
        return rearrange(z, "b h t d -> b t (h d)")
"""


def read_source(*names: str) -> str:
    """Return the code of the course's classes and functions."""
    return "\n\n".join(inspect.getsource(getattr(course, name)) for name in names)


def source_from_config(imports: str) -> str:
    """Return the code of a model whose sizes come from a config."""
    code = read_source("TransformerLM").replace(
        "self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta=10000.0",
        "self, cfg: ModelConfig",
    )
    return imports + re.sub(rf"\b({'|'.join(SIZES)}|rope_theta)\b", r"cfg.\1", code)


BASICS = read_source("Linear", "Embedding", "RMSNorm", "RotaryPositionalEmbedding", "softmax")
BLOCKS = read_source("Attention", "SwiGLU", "Block")
LAYERS = IMPORT_LINES + BASICS + "\n\n" + BLOCKS
EINOPS_BLOCKS = re.sub(r"    def split.*?(?=\n    def positions)", EINOPS_SPLIT.strip("\n"), BLOCKS, flags=re.DOTALL)
# Layouts of public solutions -> (files, argument of --module, file of the class).
PACKAGES = {
    "one file in a package whose init asks for its version": (
        {
            "pyproject.toml": PROJECT,
            "cs336_basics/__init__.py": VERSIONED,
            "cs336_basics/model.py": LAYERS + read_source("TransformerLM"),
        },
        "cs336_basics/model.py:TransformerLM",
    ),
    "relative imports": (
        {
            "cs336_basics/__init__.py": "from .transformer import TransformerLM\n",
            "cs336_basics/layers.py": LAYERS,
            "cs336_basics/transformer.py": IMPORT_LINES + "from .layers import *\n\n" + read_source("TransformerLM"),
        },
        "cs336_basics/transformer.py:TransformerLM",
    ),
    "absolute imports, a file a layer, no init": (
        {
            "pyproject.toml": PROJECT,
            **{
                f"cs336_basics/{name.lower()}.py": IMPORT_LINES + read_source(name)
                for name in ("Linear", "Embedding", "RMSNorm", "RotaryPositionalEmbedding", "softmax")
            },
            "cs336_basics/tokenize.py": "raise ImportError('not the standard library')\n",
            "cs336_basics/attention.py": IMPORT_LINES
            + "from cs336_basics.linear import Linear\nfrom cs336_basics.softmax import softmax\n"
            + read_source("Attention"),
            "cs336_basics/transformer.py": IMPORT_LINES
            + "from cs336_basics.attention import Attention\nfrom cs336_basics.embedding import Embedding\n"
            + "from cs336_basics.linear import Linear\nfrom cs336_basics.rmsnorm import RMSNorm\n"
            + "from cs336_basics.rotarypositionalembedding import RotaryPositionalEmbedding\n"
            + read_source("SwiGLU", "Block", "TransformerLM"),
        },
        "cs336_basics/transformer.py:TransformerLM",
    ),
    "a dataclass of the config in another folder": (
        {
            ".git/HEAD": "",
            "cs336_basics/models/config.py": "from dataclasses import dataclass\n" + CONFIG,
            "cs336_basics/models/layers.py": LAYERS,
            "cs336_basics/models/lm.py": source_from_config(
                "from torch import nn\n\nfrom cs336_basics.models.config import ModelConfig\n"
                "from cs336_basics.models.layers import *\n\n\n"
            ),
        },
        "cs336_basics/models/lm.py:TransformerLM",
    ),
    "a src layout, named by its repository": (
        {
            "pyproject.toml": PROJECT.replace("cs336_basics", "my-lm"),
            "src/my_lm/__init__.py": VERSIONED.replace("cs336_basics", "my-lm"),
            "src/my_lm/nn/__init__.py": "from my_lm.nn.layers import *\n",
            "src/my_lm/nn/layers.py": LAYERS,
            "src/my_lm/model.py": IMPORT_LINES + "from my_lm.nn import *\n\n\n" + read_source("TransformerLM"),
            "tests/test_model.py": "class TransformerLM: ...\n",
            ".venv/lib/site-packages/other.py": "class TransformerLM: ...\n",
        },
        ".",
    ),
    "annotations by jaxtyping, a log by wandb": (
        {
            "cs336_basics/__init__.py": "",
            "cs336_basics/layers.py": "from jaxtyping import Float, jaxtyped\nfrom beartype import beartype\n" + LAYERS,
            "cs336_basics/model.py": IMPORT_LINES
            + "import wandb\nfrom jaxtyping import Bool, Float, Int\nfrom torch import Tensor\n\n"
            + "from .layers import *\n\n\n"
            + read_source("TransformerLM").replace(
                "def forward(self, token_ids):",
                'def forward(self, token_ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"] | None:',
            ),
        },
        "cs336_basics",
    ),
    "heads by einops": (
        {
            "cs336_basics/__init__.py": "",
            "cs336_basics/model.py": "from einops import rearrange\n"
            + IMPORT_LINES
            + "\n\n".join((BASICS, EINOPS_BLOCKS, read_source("TransformerLM"))),
        },
        "cs336_basics:TransformerLM",
    ),
    "an assignment's folder within a repository": (
        {
            ".git/HEAD": "",
            "README.md": "",
            "assignment1-basics/pyproject.toml": PROJECT,
            "assignment1-basics/cs336_basics/__init__.py": VERSIONED,
            "assignment1-basics/cs336_basics/nn_utils.py": IMPORT_LINES + BASICS,
            "assignment1-basics/cs336_basics/model.py": IMPORT_LINES
            + "from cs336_basics.nn_utils import *\n\n\n"
            + BLOCKS
            + "\n\n"
            + read_source("TransformerLM").replace("TransformerLM", "BasicsTransformerLM"),
        },
        "assignment1-basics",
    ),
    "a package called model, beside its training": (
        {
            "model/__init__.py": "from model.transformer import TransformerLM\n",
            "model/layers.py": LAYERS,
            "model/transformer.py": IMPORT_LINES + "from model.layers import *\n\n\n" + read_source("TransformerLM"),
            "train.py": "import argparse\nfrom model import TransformerLM\n\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--num-heads", type=int, default=3)\nparser.add_argument("--lr", default=1e-3)\n',
            "requirements.txt": "torch\n",
        },
        "model",
    ),
    "plain scripts that import one another": (
        {
            "layers.py": LAYERS,
            "gpt.py": IMPORT_LINES
            + "from layers import *\n\n\n"
            + read_source("TransformerLM").replace("TransformerLM", "GPT"),
            "config.yaml": "model:\n  num_heads: 3\n  d_model: 24\n",
            "requirements.txt": "torch\n",
        },
        "gpt.py",
    ),
}


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def open_package(folder: Path, target: str, weights: Path, **arguments) -> UserModule:
    return load_user_module(str(folder / target), weights, arguments)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """Weights as training with `torch.compile` saves them: in bfloat16, with the optimizer's state."""
    path = tmp_path_factory.mktemp("weights") / "checkpoint.pt"
    weights = {f"_orig_mod.{name}": weight.bfloat16() for name, weight in course_model().state_dict().items()}
    torch.save({"model": weights, "optimizer": {"state": {0: {"step": 3}}}, "iteration": 3}, path)
    return path


@pytest.mark.parametrize("layout", PACKAGES)
def test_package_opens_in_place(tmp_path, checkpoint, layout):
    files, target = PACKAGES[layout]
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("model", "explorer")}
    path = list(sys.path)
    heads = {} if "train.py" in files or "config.yaml" in files else {"num_heads": 3}
    own = open_package(write_files(tmp_path, files), target, checkpoint, **heads)
    expected = course_model()
    expected.load_state_dict({name: weight.bfloat16() for name, weight in expected.state_dict().items()})
    torch.testing.assert_close(own.module(IDS), expected(IDS), rtol=0, atol=0)
    assert own.name in ("TransformerLM", "BasicsTransformerLM", "GPT") and own.sizes["num_heads"] == 3
    if not heads:
        where = "train.py" if "train.py" in files else "config.yaml"
        assert own.notes == (f"There are 3 heads, by {where}.",)
    assert sys.path == path
    assert all(sys.modules[name] is module for name, module in before.items())


def test_package_opens_from_command_line(tmp_path):
    files, _target = PACKAGES["a src layout, named by its repository"]
    sizes = (f"{name}={size}" for name, size in SIZES.items())
    command = [sys.executable, "-m", "explorer.diagnose", str(write_files(tmp_path, files)), "--config", *sizes]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.exhaustive  # half a minute each
@pytest.mark.parametrize("layout", PACKAGES)
def test_app_opens_on_package(tmp_path, checkpoint, layout):
    files, target = PACKAGES[layout]
    root, heads = Path(__file__).parents[3], [] if {"train.py", "config.yaml"} & set(files) else ["num_heads=3"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "app.py", "--port", str(port), "--module", str(write_files(tmp_path, files) / target)]
    command += ["--weights", str(checkpoint), *(["--config", *heads] if heads else [])]
    app = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        lines = []
        while not (lines and lines[-1].startswith("Running on local URL")):
            lines.append(app.stdout.readline())
            assert lines[-1], "".join(lines)
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    finally:
        app.terminate()
        app.wait(timeout=30)


def test_this_repository_opens_as_package(capsys):
    assert main([str(Path(__file__).parents[3])]) == EQUAL
    assert "TransformerLM computes what the reference does" in capsys.readouterr().out


def test_disabled_option_needs_no_values(tmp_path):
    scaling = "@dataclass\nclass Scaling:\n    kind: str\n    factor: float\n\n"
    code = IMPORT_LINES + "from dataclasses import dataclass\n\n" + scaling + BASICS + "\n\n" + BLOCKS
    code += "\n\n" + read_source("TransformerLM").replace(
        "rope_theta=10000.0", "rope_theta=10000.0, scaling: Scaling | None = None"
    )
    own = open_package(write_files(tmp_path, {"mine.py": code}), "mine.py:TransformerLM", None, **SIZES)
    assert own.module(IDS).shape == (1, IDS.shape[1], SIZES["vocab_size"])


@subtest_each(
    ("files", "target", "said"),
    [
        (
            {"p/__init__.py": "", "p/m.py": "import einx_of_nobody.deep\n\nclass TransformerLM: ...\n"},
            "p/m.py:TransformerLM",
            "m.py needs einx_of_nobody, which is not on this machine: pip install einx_of_nobody",
        ),
        (
            {"p/__init__.py": "", "p/m.py": "from .layers import x\n\nclass TransformerLM: ...\n"},
            "p",
            "m.py needs p.layers, which its package does not have.",
        ),
        (
            {"p/a.py": "class TransformerLM: ...\n", "p/b.py": "class TransformerLM: ...\n"},
            "p",
            "p has TransformerLM in several files: name one of a.py, b.py.",
        ),
        (
            {"p/a.py": "from torch import nn\n\nclass Mine(nn.Module): ...\n"},
            "p",
            "Name the class, as in {folder}/p:TransformerLM; p has: Mine.",
        ),
        ({"p/a.py": "class Mine(object): ...\n"}, "p:Other", "p has no Other; it has: Mine."),
        ({"p/a.py": "class Broken(:\n"}, "p/a.py:Broken", "a.py cannot be run: SyntaxError: "),
        ({"p/notes.txt": ""}, "p:Mine", "p has no Mine; it has: none."),
    ],
)
def test_error_names_what_is_missing(tmp_path, files, target, said):
    write_files(tmp_path, files)
    with pytest.raises(UserError) as error:
        load_user_module(str(tmp_path / target))
    assert str(error.value).startswith(said.format(folder=tmp_path))


def test_contradicting_configs_are_ignored(tmp_path, checkpoint):
    files, target = PACKAGES["plain scripts that import one another"]
    write_files(tmp_path, files | {"configs/large.toml": "num_heads = 12\n", "pyproject.toml": PROJECT})
    (tmp_path / "requirements.txt").unlink()
    with pytest.raises(UserError, match="the number of heads"):
        open_package(tmp_path, target, checkpoint)
