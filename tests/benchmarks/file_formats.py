"""Table of files of many kinds, each opened: `python -m tests.benchmarks.file_formats`.

The files are tiny ones with random weights: folders of transformers by family and type, GGUF files by architecture and
by type, LoRA adapters, and the bundled models. For each: whether it opens, by how much its logits differ from those of
the reference, all computed in float32, seconds, and the bytes of its weights in memory. References are transformers,
peft's merged model, and for quantised types a file of the weights as llama.cpp's own package dequantises them.
"""

import contextlib
import io
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import torch
from torch import Tensor, nn

from explorer.tracing.model_library import model_num_bytes
from model.checkpoint import CheckpointError, list_checkpoints, load_checkpoint
from tests.hugging_face import transformers
from tests.model.pretrained.conftest import byte_level
from tests.model.pretrained.gguf_files import write_gguf
from tests.model.pretrained.model_kinds import KINDS, NO_IDS
from tests.model.pretrained.test_gguf import MODELS

FAMILIES = (
    *("Llama 2", "Llama 3.1", "Llama, YaRN", "Mistral", "Qwen2", "Qwen3", "GPT-2", "OPT", "Phi", "Phi-3", "Granite"),
    *("Gemma", "Gemma 2", "Gemma 3", "nanochat", "OLMo 2", "SmolLM3", "GPT-Neo", "GPT-NeoX"),
)
GGUF_TYPES = "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q2_K", "Q3_K", "Q5_K", "Q6_K"
GGUF_TYPES += "IQ2_XXS", "IQ4_XS", "MXFP4", "Q8_K"
LINEAR = ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]
ADAPTERS = {
    "LoRA": {"r": 4, "target_modules": LINEAR},
    "rsLoRA": {"r": 4, "use_rslora": True, "target_modules": LINEAR},
    "LoRA with whole modules": {"r": 4, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    "DoRA": {"r": 4, "use_dora": True, "target_modules": LINEAR},
}
IDS = torch.arange(3, 22)[None]


@dataclass(frozen=True)
class Case:
    """A file to open, and its expected logits (1, T, V); None without a reference."""

    family: str
    format: str
    type: str
    path: Path | str
    expected: Tensor | None


def random_model(name: str, settings: dict) -> nn.Module:
    """Return a random model of transformers."""
    torch.manual_seed(0)
    text = "Text" * (name == "Gemma3")
    config = getattr(transformers, f"{name}{text}Config")(**settings | NO_IDS, initializer_range=0.3)
    return getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")(config).eval()


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model(IDS[:, : model.config.max_position_embeddings], use_cache=False).logits.float()


def iter_folders(folder: Path) -> Iterator[Case]:
    for family in FAMILIES:
        for dtype in (torch.float32, torch.bfloat16) if family in ("Llama 2", "GPT-2", "Gemma 2") else (torch.float32,):
            model, path = random_model(*KINDS[family]), folder / f"{family} {dtype}"
            for parameter in model.parameters():  # without the RoPE tables
                parameter.data = parameter.data.to(dtype)
            model.save_pretrained(path)
            byte_level().save(str(path / "tokenizer.json"))
            yield Case(family, "folder", str(dtype).removeprefix("torch."), path, logits(model.float()))


def iter_gguf_files(folder: Path) -> Iterator[Case]:
    for name, (architecture, kind, settings) in MODELS.items():
        model, path = random_model(kind, settings), folder / f"{name}.gguf"
        write_gguf(path, model, architecture)
        yield Case(name, "GGUF", "F32", path, logits(model))
    model = random_model("Llama", KINDS["Llama 2"][1] | {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64})
    for kind in GGUF_TYPES:
        path, plain = folder / f"{kind}.gguf", folder / f"{kind} dequantised.gguf"
        stored = write_gguf(path, model, "llama", kind=gguf.GGMLQuantizationType[kind])
        write_gguf(plain, model, "llama", weights=stored)
        yield Case("Llama 2", "GGUF", kind, path, load_checkpoint(plain)[0](IDS))


def iter_adapters(folder: Path) -> Iterator[Case]:
    import peft

    for name, settings in ADAPTERS.items():
        base, path = random_model(*KINDS["Llama 2"]), folder / name
        base.save_pretrained(folder / "base")
        byte_level().save(str(folder / "base" / "tokenizer.json"))
        adapted = peft.get_peft_model(base, peft.LoraConfig(init_lora_weights=False, **settings))
        adapted.save_pretrained(path)
        config = json.loads((path / "adapter_config.json").read_text())
        config["base_model_name_or_path"] = str(folder / "base")
        (path / "adapter_config.json").write_text(json.dumps(config))
        yield Case("Llama 2", "adapter", name, path, logits(adapted.merge_and_unload()))


def iter_cases(folder: Path) -> Iterator[Case]:
    yield from iter_folders(folder)
    yield from iter_gguf_files(folder)
    yield from iter_adapters(folder)
    for name in list_checkpoints():
        if "/" not in name:
            yield Case(name, "folder of this project", "float16", name, None)


def make_row(case: Case) -> str:
    """Open a case's file and return its row of the table."""
    start = time.perf_counter()
    try:
        with torch.inference_mode():
            lm, _tokenizer = load_checkpoint(case.path, dtype=torch.float32)
            seconds = time.perf_counter() - start
            if case.expected is None:
                result = "opens; no reference"
            else:
                ours = lm(IDS[:, : case.expected.shape[1]]).float()
                error, largest = (ours - case.expected).abs().max().item(), case.expected.abs().max().item()
                result = f"opens; logits differ by {error:.1e} of {largest:.1f}"
        size = f"{model_num_bytes(lm) / 1e6:.2f}"
    except CheckpointError as refusal:
        seconds, size, result = time.perf_counter() - start, "–", f"refused: {str(refusal)[:100]}"
    return f"| {case.family} | {case.format} | {case.type} | {result} | {seconds:.2f} | {size} |"


def main():
    warnings.simplefilter("ignore")
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):  # without progress bars
        rows = [make_row(case) for case in iter_cases(Path(folder))]
    print("| family | format | type | result | s | MB |\n| --- | --- | --- | --- | --- | --- |", *rows, sep="\n")


if __name__ == "__main__":
    main()
