"""`python -m model.training.report NAME --validation TEXT`: measurements for a trained model's card."""

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import torch

from model.checkpoint import checkpoint_folder, list_checkpoints, load_checkpoint
from model.generation.autoregressive import generate
from model.tokenizer import Tokenizer
from model.training.data import encode_documents, read_documents
from model.training.evaluation import Evaluation, copying_head_scores, evaluate
from model.transformer_lm import TransformerLM

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 48, 150, 28, 44  # pixels, the last four margins
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
TEXT = "#808080"  # legible on white and on black


def curves_svg(steps: Sequence[int], curves: Mapping[str, Sequence[float]], ylabel: str) -> str:
    """Draw values between 0 and 1 by step as SVG; steps are on a logarithmic axis, with 0 at the place of 1/2."""
    positions = [math.log2(max(step, 0.5)) for step in steps]
    first, last = positions[0], positions[-1]

    def x(position: float) -> float:
        return LEFT + (position - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM)

    elements = []
    for value in (0, 0.25, 0.5, 0.75, 1):
        elements.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}" stroke="{TEXT}55"/>')
        elements.append(svg_text(LEFT - 8, y(value) + 4, f"{value:g}", "end"))
    label_interval = -(-len(steps) // 8)  # label, from the last one back
    for step, position in list(zip(steps, positions, strict=True))[::-label_interval]:
        elements.append(svg_text(x(position), HEIGHT - BOTTOM + 18, f"{step:,}"))
    elements.append(svg_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "training step"))
    elements.append(svg_text(4, TOP - 14, ylabel, "start"))
    ends = sorted(((values[-1], name) for name, values in curves.items()), reverse=True)
    label_y = {name: max(y(value), TOP + 16 * i) + 4 for i, (value, name) in enumerate(ends)}
    for color, (name, values) in zip(COLORS, curves.items(), strict=False):
        points = " ".join(f"{x(p):.1f},{y(v):.1f}" for p, v in zip(positions, values, strict=True))
        elements.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        elements += [
            f'<circle cx="{x(p):.1f}" cy="{y(v):.1f}" r="3" fill="{color}"/>'
            for p, v in zip(positions, values, strict=True)
        ]
        elements.append(svg_text(WIDTH - RIGHT + 10, label_y[name], name, "start", color))
    body = "\n".join(elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n{body}\n</svg>\n'
    )


def svg_text(x: float, y: float, label: str, anchor: str = "middle", color: str = TEXT) -> str:
    """Return a text element of an SVG image."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(label)}</text>'


PROMPTS = ("Once upon a time", "One day, a little girl named", "The old fox and the young owl")
KINDS = ("previous_token", "induction")


def report(checkpoint: str, validation: Path) -> str:
    """Return loss, copying heads on random and on natural text, and samples, as Markdown."""
    lm, tokenizer = load_checkpoint(checkpoint)
    score, ids = score_model(lm, tokenizer, validation)
    context = lm.config.context_length
    windows = ids[: 32 * context].view(-1, context)
    lines = [
        f"Validation loss {score.loss:.4f} nats a token, {score.bits_per_byte:.4f} bits a byte.",
        "",
        "| head | score on repeated random tokens | on natural text |",
        "| --- | --- | --- |",
    ]
    on_random, on_text = copying_head_scores(lm), copying_head_scores(lm, windows)
    for kind in KINDS:
        for index in on_random[kind].flatten().argsort(descending=True)[:3].tolist():
            layer, head = divmod(index, lm.config.num_heads)
            random_score, text_score = (scores[kind][layer, head].item() for scores in (on_random, on_text))
            name = kind.replace("_", "-")
            lines.append(f"| layer {layer} head {head}, {name} | {random_score:.2f} | {text_score:.2f} |")
    return "\n".join(lines + generate_samples(lm, tokenizer))


def generate_samples(lm: TransformerLM, tokenizer: Tokenizer) -> list[str]:
    """Generate a text for each prompt, as quoted Markdown."""
    lines = []
    for seed, prompt in enumerate(PROMPTS):
        steps = generate(
            lm,
            tokenizer.encode(prompt),
            max_new_tokens=120,
            temperature=0.8,
            top_k=40,
            seed=seed,
            stop_tokens={tokenizer.end_of_text},
        )
        text = tokenizer.decode([step.token_id for step in steps if step.token_id != tokenizer.end_of_text])
        lines += [
            "",
            f"Temperature 0.8, top-k 40, seed {seed}:",
            "",
            *(f"> {line}" for line in f"**{prompt}**{text}".split("\n")),
        ]
    return lines


def series_report(snapshots: list[str], validation: Path) -> tuple[str, str]:
    """Return loss and best copying heads of every snapshot, as a Markdown table and as an SVG of the scores."""
    lines = ["| step | bits a byte | previous-token score | induction score |", "| --- | --- | --- | --- |"]
    steps, curves = [], {kind: [] for kind in KINDS}
    for name in snapshots:
        lm, tokenizer = load_checkpoint(name)
        score, _ = score_model(lm, tokenizer, validation)
        steps.append(int(name.rpartition("-")[2]))
        scores = copying_head_scores(lm)
        cells = [f"{steps[-1]:,}", f"{score.bits_per_byte:.3f}"]
        for kind in KINDS:
            curves[kind].append(scores[kind].max().item())
            layer, head = divmod(scores[kind].argmax().item(), lm.config.num_heads)
            cells.append(f"{curves[kind][-1]:.2f} (layer {layer} head {head})")
        lines.append(f"| {' | '.join(cells)} |")
    labelled_curves = {kind.replace("_", "-"): values for kind, values in curves.items()}
    return "\n".join(lines), curves_svg(steps, labelled_curves, "best head's score")


def score_model(lm: TransformerLM, tokenizer: Tokenizer, text: Path) -> tuple[Evaluation, torch.Tensor]:
    """Return the model's evaluation on a text, and the text's ids (N,)."""
    documents = read_documents(text)
    ids = encode_documents(documents, tokenizer)
    return evaluate(lm, ids, num_bytes=sum(len(document.encode()) for document in documents)), ids


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a name in checkpoints/ or a path")
    parser.add_argument("--validation", type=Path, required=True, help="held-out text")
    options = parser.parse_args()
    series = [name for name in list_checkpoints() if name.startswith(f"{options.checkpoint}/step-")]
    if series:
        table, svg = series_report(series, options.validation)
        (checkpoint_folder(options.checkpoint) / "scores.svg").write_text(svg, encoding="utf-8")
        print(table)
    else:
        print(report(options.checkpoint, options.validation))
