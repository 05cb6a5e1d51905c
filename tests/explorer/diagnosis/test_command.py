"""The command `python -m explorer.diagnose`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from explorer.diagnosis.command_line import main
from tests import course, nanogpt
from tests.course import TransformerLM
from tests.subtest_loops import subtest_each

COURSE, SPELLED = Path(course.__file__), Path(nanogpt.__file__)
SIZES = {"vocab_size": 50, "context_length": 20, "d_model": 32, "num_layers": 3, "num_heads": 4, "d_ff": 48}
BUGGY_MODULE = """
from course import *

class Mine(TransformerLM):
    def forward(self, token_ids):
        x = self.token_embeddings(token_ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)

def make():
    return TransformerLM(50, 20, 32, 3, 4, 48)

class Fails(TransformerLM):
    def __init__(self, vocab_size, context_length, wonder):
        super().__init__(vocab_size, context_length, 32, 2, 2, 48)

class Reads(TransformerLM):
    def __init__(self, config):
        super().__init__(config.vocab_size, config.context_length, config.wonder, 2, 2, 48)

class HandsOn(Mine):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

class Crashes(Mine):
    def forward(self, token_ids):
        return self.lm_head(token_ids)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "course.py").write_text(COURSE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mine.py").write_text(BUGGY_MODULE, encoding="utf-8")
    torch.manual_seed(1)
    torch.save({"model": TransformerLM(**SIZES).state_dict(), "step": 3}, tmp_path / "weights.pt")
    save_file(TransformerLM(**SIZES).state_dict(), tmp_path / "weights.safetensors")
    torch.save({"model": TransformerLM(**SIZES | {"d_ff": 40}).state_dict()}, tmp_path / "other.pt")
    (tmp_path / "empty.pt").write_bytes(b"")
    return tmp_path


@pytest.mark.exhaustive
def test_command_runs_from_shell():
    command = [sys.executable, "-m", "explorer.diagnose", f"{COURSE}:TransformerLM"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=COURSE.parent.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("TransformerLM computes what the reference does")


@pytest.mark.parametrize("weights", ["weights.pt", "weights.safetensors"])
@pytest.mark.exhaustive
def test_sizes_are_read_from_weights(folder, capsys, weights):
    options = ["--weights", str(folder / weights), "--config", "num_heads=4", "context_length=20"]
    assert main([f"{folder}/mine.py:Mine", *options]) == 1
    output = capsys.readouterr().out
    assert "Mine parts from the reference at final_norm" in output and "the final norm is missing" in output
    assert main([f"{folder}/mine.py:make", "--weights", str(folder / weights)]) == 0


def test_dataclass_config_is_built(capsys):
    assert main([f"{SPELLED}:GPT"]) == 0
    assert "GPT computes what the reference does" in capsys.readouterr().out


def test_inherited_arguments_are_used(folder, capsys):
    assert main([f"{folder}/mine.py:HandsOn"]) == 1
    assert "HandsOn parts from the reference at final_norm" in capsys.readouterr().out


def test_reference_settings_can_be_given(capsys):
    assert main([f"{COURSE}:TransformerLM", "--config", "norm_eps=1e-6"]) == 1
    assert "ε is 0.00001" in capsys.readouterr().out


GROUPED = """
import torch
from course import *

class Grouped(Attention):
    def __init__(self, d_model, num_heads, rope):
        super().__init__(d_model, num_heads, rope)
        self.k_proj, self.v_proj = Linear(d_model, d_model // 2), Linear(d_model, d_model // 2)
        self.h, self.g = num_heads, num_heads // 2
        del self.num_heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p(x).view(b, t, -1, d // self.h).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self.rotated(q, k, self.positions(x))
        k, v = (y.repeat_interleave(2, 1) for y in (k, v))
        z = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output_proj(z.transpose(1, 2).reshape(b, t, d))

class Mine(TransformerLM):
    def __init__(self, heads_=6):
        super().__init__(50, 20, 48, 2, heads_, 48)
        for layer in self.layers:
            layer.attn = Grouped(48, heads_, layer.attn.rope)
"""


@pytest.mark.parametrize("given", [[], ["--config", "num_heads=6"], ["--config", "n_head=6", "num_kv_heads=3"]])
def test_number_of_heads_is_given_or_found(folder, capsys, given):
    (folder / "grouped.py").write_text(GROUPED)
    assert main([f"{folder}/grouped.py:Mine", *given]) == 0
    assert "num_heads=6" in capsys.readouterr().out


def test_vocabulary_prints_input_tokens(folder, capsys):
    (folder / "chars.txt").write_text("".join(map(chr, range(65, 115))))
    module_path = f"{folder}/mine.py:make"
    assert main([module_path, "--tokenizer", str(folder / "chars.txt")]) == 0
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line.startswith("Input tokens of both models, by the vocabulary: '") and last_line.count("'") == 34


def test_names_are_read_from_file(tmp_path, capsys):
    table = tmp_path / "names.json"
    table.write_text(json.dumps({"layers.*.ln1": "blocks.*.ffn_norm", "layers.*.ln2": "blocks.*.attn_norm"}))
    assert main([f"{COURSE}:TransformerLM", "--names", str(table)]) == 1  # the table swaps the norms
    table.write_text("[]")
    assert main([f"{COURSE}:TransformerLM", "--names", str(table)]) == 2
    assert "is not a JSON object of weight names" in capsys.readouterr().err


@subtest_each(
    ("arguments", "told"),
    [
        (["nowhere.py:Mine"], "there is no file 'nowhere.py'"),
        ([".:Nobody"], "has no Nobody; it has: "),
        (["mine.py"], "Name the class, as in mine.py:TransformerLM; mine.py has: "),
        (["mine.py:"], "named as file.py:Class, or by the folder"),
        (["mine.py:Nobody"], "mine.py has no Nobody"),
        (["mine.py:math"], "got module"),
        (["mine.py:Fails"], "It needs wonder"),
        (["mine.py:Reads"], "It needs wonder"),
        (["mine.py:Crashes"], r"fails on 17 tokens"),
        (["broken.py:Mine"], "broken.py cannot be run: SyntaxError"),
        (["leaves.py:Mine"], "leaves.py cannot be run: SystemExit"),
        (["mine.py:make", "--weights", "nowhere.pt"], "there is no file"),
        (["mine.py:make", "--weights", "empty.pt"], "empty.pt holds no weights that can be read"),
        (["mine.py:make", "--weights", "other.pt"], "do not fit the module"),
        (["mine.py:Mine", "--weights", "weights.pt"], "It needs num_heads"),
        (["mine.py:make", "--config", "num_heads"], "takes NAME=VALUE"),
        (["mine.py:make", "--config", "num_heads=5"], "num_heads must divide d_model"),
    ],
)
def test_errors_are_one_sentence(folder, capsys, monkeypatch, arguments, told):
    monkeypatch.chdir(folder)
    (folder / "broken.py").write_text("class Mine(:\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit('no')\n")
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.err.startswith("error: ") and told in output.err and output.err.count("\n") == 1
    assert output.out == ""
