"""`python -m model.training.report NAME --validation TEXT`: what a model card says of a trained model, measured."""

import argparse
from pathlib import Path

from model.checkpoint import load_checkpoint
from model.generation import generate
from model.training.data import encode_documents, read_documents
from model.training.evaluation import evaluate
from model.training.head_scores import copying_head_scores

PROMPTS = ("Once upon a time", "One day, a little girl named", "The old fox and the young owl")


def report(checkpoint: str, validation: Path) -> str:
    """Loss, copying heads on random and on natural text, and samples, as Markdown."""
    lm, tokenizer = load_checkpoint(checkpoint)
    documents = read_documents(validation)
    ids = encode_documents(documents, tokenizer)
    score = evaluate(lm, ids, num_bytes=sum(len(document.encode()) for document in documents))
    context = lm.config.context_length
    windows = ids[: 32 * context].view(-1, context)
    lines = [
        f"Validation loss {score.loss:.4f} nats a token, {score.bits_per_byte:.4f} bits a byte.",
        "",
        "| head | score on repeated random tokens | on natural text |",
        "| --- | --- | --- |",
    ]
    on_random, on_text = copying_head_scores(lm), copying_head_scores(lm, windows)
    for kind in ("previous_token", "induction"):
        for index in on_random[kind].flatten().argsort(descending=True)[:3].tolist():
            layer, head = divmod(index, lm.config.num_heads)
            random_score, text_score = (scores[kind][layer, head].item() for scores in (on_random, on_text))
            name = kind.replace("_", "-")
            lines.append(f"| layer {layer} head {head}, {name} | {random_score:.2f} | {text_score:.2f} |")
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
        text = tokenizer.decode([s.token_id for s in steps if s.token_id != tokenizer.end_of_text])
        lines += [
            "",
            f"Temperature 0.8, top-k 40, seed {seed}:",
            "",
            *(f"> {line}" for line in f"**{prompt}**{text}".split("\n")),
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="a name in checkpoints/ or a path")
    parser.add_argument("--validation", type=Path, required=True, help="held-out text")
    options = parser.parse_args()
    print(report(options.checkpoint, options.validation))
