"""The training loop."""

import json
import sys
import time
from contextlib import nullcontext

import torch
import torch.nn.functional as F

from model.checkpoint import checkpoint_folder, save_checkpoint
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.training.bpe import train_bpe
from model.training.data import Batches, encode_documents, read_documents
from model.training.evaluation import evaluate
from model.training.head_scores import copying_head_scores
from model.training.optimizer import build_optimizers
from model.training.options import TrainingOptions
from model.training.schedule import learning_rate_factor
from model.transformer_lm import TransformerLM


def train(options: TrainingOptions) -> TransformerLM:
    """Train a model from scratch and write it to `options.out`, with its loss curve in `training.jsonl`.

    Raises:
        OSError: the tokenizer's file cannot be read, or `options.out` not written.
        ValueError: an option or the text does not fit; the message says how.
        FloatingPointError: the loss is no longer a number.
    """
    try:
        torch.empty(0, device=options.device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"cannot train on the device {options.device!r}: {error}") from None
    torch.manual_seed(options.seed)
    train_documents = read_documents(options.train)
    validation_documents = read_documents(options.validation)
    if options.tokenizer:
        tokenizer = Tokenizer.load(options.tokenizer)
    else:
        tokenizer = train_bpe(train_documents, options.vocab_size)
    train_ids = encode_documents(train_documents, tokenizer)
    validation_ids = encode_documents(validation_documents, tokenizer)
    validation_bytes = sum(len(document.encode()) for document in validation_documents)

    config = ModelConfig.llama_style(
        vocab_size=tokenizer.vocab_size,
        context_length=options.context_length,
        d_model=options.d_model,
        num_layers=options.num_layers,
        num_heads=options.num_heads,
        d_ff=options.d_ff,
        dropout=options.dropout,
        tie_embeddings=True,
    )
    lm = TransformerLM(config).to(options.device).train()

    def loss_of(inputs, targets):
        logits = lm(inputs)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    if options.compile:
        loss_of = torch.compile(loss_of)
    batches = Batches(train_ids, config.context_length, options.batch_size, config.vocab_size, options.seed)
    betas = (options.beta1, options.beta2)
    optimizers = build_optimizers(lm, options.optimizer, options.learning_rate, options.weight_decay, betas)

    folder = checkpoint_folder(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "training.jsonl"
    log.write_text("", encoding="utf-8")
    started, train_loss, since = time.monotonic(), 0.0, 0
    for step in range(1, options.steps + 1):
        factor = learning_rate_factor(step - 1, options.warmup_steps, options.steps, options.final_learning_rate)
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = group["peak_lr"] * factor
        copying = step > options.copy_from * options.steps
        inputs, targets = batches.next(options.copy_fraction if copying else 0.0)
        with mixed_precision(options):
            loss = loss_of(inputs.to(options.device), targets.to(options.device))
        if not loss.isfinite():
            raise FloatingPointError(f"the loss is {loss.item()} at step {step}: lower the learning rate")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(lm.parameters(), options.clip)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        train_loss, since = train_loss + loss.item(), since + 1

        if step % options.evaluate_every == 0 or step == options.steps:
            score = evaluate(lm, validation_ids, validation_bytes)
            heads = copying_head_scores(lm)
            seconds = time.monotonic() - started
            record = {
                "step": step,
                "tokens": step * options.batch_size * config.context_length,
                "train_loss": round(train_loss / since, 4),
                "validation_loss": round(score.loss, 4),
                "bits_per_byte": round(score.bits_per_byte, 4),
                "previous_token_score": round(heads["previous_token"].max().item(), 3),
                "induction_score": round(heads["induction"].max().item(), 3),
                "learning_rate": options.learning_rate * factor,
                "seconds": round(seconds, 1),
            }
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            left = seconds / step * (options.steps - step) / 60
            print(json.dumps(record), f"{left:.0f} minutes left", file=sys.stderr, flush=True)
            save_checkpoint(lm, tokenizer, options.out)
            train_loss, since = 0.0, 0
    return lm.eval()


def mixed_precision(options: TrainingOptions):
    """Matrix products in bfloat16, the rest in float32; or everything in float32."""
    if options.precision == "float32":
        return nullcontext()
    return torch.autocast(torch.device(options.device).type, dtype=torch.bfloat16)
