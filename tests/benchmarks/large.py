"""A model as large as Llama 3.2 1B, in bfloat16: `python -m tests.benchmarks.large`, on Linux, by hand.

Random weights are written to a temporary folder (2.5 GB); then a process of its own opens them as the app does, gives
the page's first answer about a run, checks the first figure, and then draws every one; of those that wait for a button
it works out one piece. Its memory is the most that was resident at once, mapped files included.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, VOCABULARY = 2048, 16, 32, 8, 8192, 128256
CONFIG = {
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": WIDTH // HEADS,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
}


def write_checkpoint(folder: Path):
    """Write weights in one file per layer, to need little memory at once, and a byte tokenizer."""

    def random(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape) / shape[-1] ** 0.5).bfloat16()

    files, kv = {}, KV_HEADS * WIDTH // HEADS
    for layer in range(LAYERS):
        begin = f"model.layers.{layer}"
        weights = {
            f"{begin}.self_attn.q_proj.weight": random(WIDTH, WIDTH),
            f"{begin}.self_attn.k_proj.weight": random(kv, WIDTH),
            f"{begin}.self_attn.v_proj.weight": random(kv, WIDTH),
            f"{begin}.self_attn.o_proj.weight": random(WIDTH, WIDTH),
            f"{begin}.mlp.gate_proj.weight": random(HIDDEN, WIDTH),
            f"{begin}.mlp.up_proj.weight": random(HIDDEN, WIDTH),
            f"{begin}.mlp.down_proj.weight": random(WIDTH, HIDDEN),
            f"{begin}.input_layernorm.weight": torch.ones(WIDTH).bfloat16(),
            f"{begin}.post_attention_layernorm.weight": torch.ones(WIDTH).bfloat16(),
        }
        save_file(weights, folder / f"layer-{layer}.safetensors")
        files |= dict.fromkeys(weights, f"layer-{layer}.safetensors")
    ends = {"model.embed_tokens.weight": random(VOCABULARY, WIDTH), "model.norm.weight": torch.ones(WIDTH).bfloat16()}
    save_file(ends, folder / "ends.safetensors")
    files |= dict.fromkeys(ends, "ends.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write_byte_tokenizer(folder)


def write_byte_tokenizer(folder: Path):
    """Write a tokenizer whose tokens are the 256 bytes."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["a"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))


def resident_gb() -> float:
    """Return the resident memory of this process in GB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024 / 1e9


def measure(folder: str, num_tokens: int, device: str):
    """Open, capture and draw in this process; print time and peak memory of each step."""
    from explorer.state.selection import Selection
    from explorer.tracing.jobs import RequestBudget, ResultNotReadyError
    from explorer.tracing.model_library import ModelLibrary, model_num_bytes
    from explorer.tracing.run_service import RunService
    from explorer.views import VIEWS
    from explorer.views.view import Panel
    from explorer.web.browser_api.endpoints import BrowserEndpoints
    from explorer.web.request_validation import to_json_bytes

    torch.set_num_threads(2)
    began, base, peak = time.perf_counter(), resident_gb(), [0.0]

    def watch():
        while True:
            peak[0] = max(peak[0], resident_gb())
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()

    def print_step(label: str):
        nonlocal began
        took, began = time.perf_counter() - began, time.perf_counter()
        print(f"{label:58s} {took:7.2f} s, {peak[0]:5.2f} GB at most", flush=True)

    library = ModelLibrary(device)
    name = library.catalog.open(folder)
    lm, _tokenizer = library.model(name)
    weights = model_num_bytes(lm) / 1e9
    print_step(f"opened: weights {weights:.2f} GB, before it {base:.2f} GB resident")
    ids = tuple(range(300, 300 + num_tokens))
    with torch.inference_mode():
        lm(torch.tensor([ids[:4]], device=device)).cpu()
        print_step("a first pass over 4 tokens")
        lm(torch.tensor([ids], device=device)).cpu()
    print_step(f"a plain pass over {num_tokens} tokens")
    page_state = {"checkpoint": name, "prompt": list(ids), "query": num_tokens - 1}
    to_json_bytes(BrowserEndpoints(RunService(library)).answer("show", page_state, stage=0))
    print_step("the page's first answer: the run, its map, next tokens")
    trace = library.trace(name, ids)
    print(f"{trace.num_bytes / 1e6:.0f} MB kept of the run")

    def draw_panel(panel: Panel) -> bool:
        if not panel.is_applicable(trace) or panel.compared_run or panel.kind == "html":
            return False
        selection = Selection(query=num_tokens - 1, layer=3, head=2).clamp_to_trace(trace)
        try:
            with RequestBudget(sys.maxsize, sys.float_info.max).activate():
                panel.draw(trace, selection)
        except ResultNotReadyError as waiting:
            next(waiting.job.steps())
        return True

    views = [view for view in VIEWS if view.is_applicable(trace) and view.name not in ("patching", "training")]
    first = views[0].panels[0]
    verification = first.verify(trace, Selection(query=num_tokens - 1).clamp_to_trace(trace))
    print_step(f"the mark of {first.name}: {verification.state}")
    for view in views:
        count = sum(map(draw_panel, view.panels))
        print_step(f"all {count} figures of {view.name}")
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"most resident at once: {peak_gb:.2f} GB")
    if torch.device(device).type == "cuda":
        print(f"most of the GPU's at once: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--folder", help="folder to write to and keep, or the folder of an earlier run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--look", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look:
        measure(options.look, options.tokens, options.device)
        return
    with tempfile.TemporaryDirectory(prefix="large-") as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "tokenizer.json").exists():
            write_checkpoint(folder)
        command = [sys.executable, "-m", "tests.benchmarks.large", "--look", str(folder)]
        subprocess.run([*command, "--tokens", str(options.tokens), "--device", options.device], check=True)


if __name__ == "__main__":
    main()
