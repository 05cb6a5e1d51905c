"""`python -m model.training.report NAME --validation TEXT`: measurements for a trained model's card."""

import argparse
from pathlib import Path

import torch

from model.checkpoint import list_checkpoints, load_checkpoint
from model.generation.autoregressive import generate
from model.tokenizer import Tokenizer
from model.training.data import encode_documents, read_documents
from model.training.evaluation import Evaluation, copying_head_scores, evaluate
from model.transformer_lm import TransformerLM

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


def series_report(snapshots: list[str], validation: Path) -> str:
    """Return loss and best copying heads of every snapshot, as a Markdown table."""
    lines = ["| step | bits a byte | previous-token score | induction score |", "| --- | --- | --- | --- |"]
    for name in snapshots:
        lm, tokenizer = load_checkpoint(name)
        score, _ = score_model(lm, tokenizer, validation)
        scores = copying_head_scores(lm)
        cells = [f"{int(name.rpartition('-')[2]):,}", f"{score.bits_per_byte:.3f}"]
        for kind in KINDS:
            layer, head = divmod(scores[kind].argmax().item(), lm.config.num_heads)
            cells.append(f"{scores[kind].max().item():.2f} (layer {layer} head {head})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


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
    print(series_report(series, options.validation) if series else report(options.checkpoint, options.validation))
