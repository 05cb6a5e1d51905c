"""Peak memory of loading a model, compared with its weights."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.hugging_face import transformers
from tests.model.pretrained.conftest import byte_level
from tests.model.pretrained.model_kinds import NO_IDS

# Many matrices, none large in relation to the whole, as in large models: about 300 MB in float32.
SIZES = {
    "Llama": {"vocab_size": 300, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 24}
    | {"num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 64},
    "GPT2": {"vocab_size": 300, "n_embd": 512, "n_layer": 24, "n_head": 8, "n_positions": 64},
}
LOADING_SCRIPT = """
import sys
from pathlib import Path
from model.checkpoint import load_checkpoint

def now(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

load_checkpoint(sys.argv[1])  # whatever the first load brings besides weights
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
before = now("VmRSS")
lm, _tokenizer = load_checkpoint(sys.argv[2])
weights = sum({weight.data_ptr(): weight.nbytes for weight in lm.parameters()}.values())
print((now("VmHWM") - before) / 1e6, weights / 1e6)
"""


def save_model(folder: Path, family: str, dtype: torch.dtype, **smaller) -> Path:
    config = getattr(transformers, f"{family}Config")(**SIZES[family] | smaller, **NO_IDS)
    model = getattr(transformers, f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")(config)
    model.to(dtype).save_pretrained(folder)
    byte_level().save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux, which counts the peak")
@pytest.mark.parametrize(("family", "dtype"), [("Llama", torch.bfloat16), ("GPT2", torch.float32)])
@pytest.mark.exhaustive
def test_loading_makes_no_second_copy_of_weights(tmp_path, family, dtype):
    """Resident memory, including mapped files, stays below 1.15 times the weights.

    Measured: 1.03 to 1.07 times, and 1.37 where matrices were transposed and the freed memory was not trimmed.
    """
    (small := tmp_path / "small").mkdir(), (large := tmp_path / "large").mkdir()
    save_model(small, family, dtype, **{"n_layer" if family == "GPT2" else "num_hidden_layers": 1})
    save_model(large, family, dtype)
    command = [sys.executable, "-c", LOADING_SCRIPT, str(small), str(large)]
    ran = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    peak, weights = map(float, ran.stdout.split())
    assert weights > 70 and peak <= 1.15 * weights, (peak, weights)
