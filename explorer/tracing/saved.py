"""Runs as files: safetensors, with what they are of as text in the metadata; nothing of them is ever executed."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from explorer.architecture.stream import block_output
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import FromOther, parse_edits
from explorer.tracing.capture import offered
from explorer.tracing.models import ModelGone, Weights, living, offer
from explorer.tracing.on_demand import OnDemand
from explorer.tracing.tap_shapes import tap_shapes
from explorer.tracing.trace import Trace
from model.checkpoint import write_whole
from model.config import ModelConfig
from model.merges import MergeRules

FORMAT = "a run of TransformerLM Explorer, 1"
UNCHANGED = "unchanged/"  # before the names of values of a changed run's baseline
MARKS = "word_start", "word_end"  # of `MergeRules`
SAMPLED = 16  # rows of each weight, and as many numbers of each, by which the model is known again


class OtherModel(Exception):
    """A model with other weights was given."""


def save(trace: Trace, path: str | Path) -> Path:
    """Write what the run keeps; see `Trace.save`."""
    path = Path(path)
    if any(isinstance(edit, FromOther) for edit in trace.edits):
        raise UserError(_("a run that takes values of another cannot be saved: save it without those changes"))
    values = dict(trace.kept)
    if trace.baseline:
        values |= {UNCHANGED + name: value for name, value in trace.baseline.kept.items()}
    first: dict[Any, str] = {}
    same = {name: first.setdefault((value.ctypes.data, value.shape), name) for name, value in values.items()}
    same = {name: other for name, other in same.items() if name != other}  # in the same memory, written once
    config = {name: value for name, value in asdict(trace.config).items() if value is not None}
    known = {
        "config": config,
        "token_ids": trace.token_ids,
        "vocabulary": list(trace.vocabulary),
        "token_bytes": [None if piece is None else as_text(piece) for piece in trace.token_bytes],
        "merge_rules": rules_as_text(trace.merge_rules),
        "edits": [str(edit) for edit in trace.edits],
        "means_over": [getattr(edit, "over", None) for edit in trace.edits],
        "changed": trace.baseline is not None,
        "dtype": trace.dtype,
        "same": same,
        "model": trace.model,
        "weights": fingerprint(trace.weights),
    }
    metadata = {"format": FORMAT} | {name: json.dumps(value) for name, value in known.items()}
    whole = {name: np.ascontiguousarray(value) for name, value in values.items() if name not in same}
    write_whole(path, lambda part: save_file(whole, part, metadata))
    return path


def load(path: str | Path, lm: Any = None) -> Trace:
    """The run in a file; see `Trace.load`."""
    path = Path(path)
    try:
        with safe_open(path, framework="np") as file:
            text = file.metadata() or {}
            if text.get("format") != FORMAT:
                raise ValueError(_("it does not say that it is one"))
            known = {name: json.loads(value) for name, value in text.items() if name != "format"}
            values = {name: checked(name, file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118, no mapping
        return made(known, values | {name: values[other] for name, other in known["same"].items()}, lm)
    except OtherModel:
        raise UserError(_("these are not the weights that the saved run was computed with")) from None
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = _("it lacks {name}", name=error) if isinstance(error, KeyError) else error
        raise UserError(_("{path} is no saved run: {why}", path=path, why=why)) from error


def checked(name: str, value: np.ndarray) -> np.ndarray:
    if value.dtype != np.float32:
        raise ValueError(_("{name} is {dtype}, and a run's values are float32", name=name, dtype=value.dtype))
    value.flags.writeable = False
    return value


def made(known: Mapping[str, Any], values: Mapping[str, np.ndarray], lm: Any) -> Trace:
    """The run that a file tells of, of its values; ValueError, KeyError or TypeError where they make none."""
    config = ModelConfig.from_dict(known["config"])
    ids, vocabulary = known["token_ids"], tuple(known["vocabulary"])
    if config.num_layers > len(values):
        raise ValueError(_("{layers} layers, and {values} values", layers=config.num_layers, values=len(values)))
    if len(vocabulary) != config.vocab_size or not all(isinstance(text, str) for text in vocabulary):
        raise ValueError(_("its vocabulary has not a text of each token"))
    if not isinstance(ids, list) or not 0 < len(ids) <= config.context_length:
        raise ValueError(_("it has no tokens, or too many"))
    if not all(type(i) is int and 0 <= i < len(vocabulary) for i in ids):
        raise ValueError(_("its tokens are not of its vocabulary"))
    edits = parse_edits(known["edits"])
    for edit in edits:
        if isinstance(edit, FromOther):
            raise ValueError(_("it takes values of another run"))
        edit.check(config, tap_shapes(config, 1))
    over = zip(edits, known["means_over"], strict=True)
    edits = tuple(replace(edit, over=int(count)) if count else edit for edit, count in over)
    model = model_of(known, config, lm)
    pieces, rules = known["token_bytes"], known["merge_rules"]
    if len(pieces) not in (0, len(vocabulary)):
        raise ValueError(_("its vocabulary has not a text of each token"))
    others = {
        "vocabulary": vocabulary,
        "weights": Weights(model),
        "token_bytes": tuple(None if piece is None else as_bytes(piece) for piece in pieces),
        "merge_rules": rules_of(rules),
        "model": model,
        "dtype": str(known["dtype"]),
    }
    if others["dtype"] not in ("float32", "float16", "bfloat16"):
        raise ValueError(_("it does not say how its numbers were rounded"))

    def run(found: dict[str, np.ndarray], edits: tuple, baseline: Trace | None) -> Trace:
        return Trace(
            config, tuple(ids), values=kept(found, config, ids, model, edits), edits=edits, baseline=baseline, **others
        )

    own = {name: value for name, value in values.items() if not name.startswith(UNCHANGED)}
    before = {name.removeprefix(UNCHANGED): value for name, value in values.items() if name.startswith(UNCHANGED)}
    return run(own, edits, run(before, (), None) if known["changed"] else None)


def kept(
    values: dict[str, np.ndarray], config: ModelConfig, ids: list[int], model: Any, edits: tuple
) -> Mapping[str, np.ndarray]:
    """In the order in which they were computed; where some are missing, they are asked of the model."""
    shapes = tap_shapes(config, len(ids))
    for name, value in values.items():
        if shapes.get(name) != value.shape:
            raise ValueError(_("{name} of shape {shape} is no value of its model", name=name, shape=value.shape))
    if len(values) == len(shapes):
        return {name: values[name] for name in shapes}
    needed = ("embed", *(block_output(config, layer) for layer in range(config.num_layers)), "final_norm")
    for name in needed:
        if name not in values:
            raise KeyError(name)
    return OnDemand({name: values[name] for name in shapes if name in values}, shapes, model, tuple(ids), edits)


def model_of(known: Mapping[str, Any], config: ModelConfig, lm: Any) -> Any:
    """The identity of the model that ran: that of `lm`, where one is given; OtherModel where that is another."""
    if lm is None:
        identity = as_key(known["model"])
        there = living(identity)
        same = there is not None and there.config == config and fingerprint(Weights(identity)) == known["weights"]
        return identity if same else ("saved", str(known["weights"]))
    identity = offer(lm, offered)
    if lm.config != config or fingerprint(Weights(identity)) != known["weights"]:
        raise OtherModel
    return identity


def fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    """Of a model's weights, by some numbers of each; "" where the model is gone."""
    found = hashlib.sha256()
    with suppress(ModelGone):
        for name in sorted(weights):
            rows = weights[name][:: max(1, len(weights[name]) // SAMPLED)].reshape(-1)
            some = rows[:: max(1, len(rows) // SAMPLED**2)].astype("<f4")
            found.update(f"{name} {weights[name].shape} ".encode() + some.tobytes())
        return found.hexdigest()
    return ""


def as_key(value: Any) -> Any:
    """What JSON made lists of, as an identity again."""
    return tuple(map(as_key, value)) if isinstance(value, list) else value


def as_text(piece: bytes) -> str:
    return piece.decode("latin-1")


def as_bytes(text: str) -> bytes:
    return text.encode("latin-1")


def rules_as_text(rules: MergeRules | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    ranks = rules.ranks and [[as_text(left), as_text(right), rank] for (left, right), rank in rules.ranks.items()]
    ids = [[as_text(piece), number] for piece, number in rules.ids.items()]
    marks = {name: as_text(getattr(rules, name)) for name in MARKS}
    return {"ids": ids, "ranks": ranks, "of_characters": rules.of_characters} | marks


def rules_of(text: Mapping[str, Any] | None) -> MergeRules | None:
    if text is None:
        return None
    ranks = text["ranks"]
    if ranks is not None:
        ranks = {(as_bytes(left), as_bytes(right)): int(rank) for left, right, rank in ranks}
    ids = {as_bytes(piece): int(number) for piece, number in text["ids"]}
    marks = {name: as_bytes(text.get(name, "")) for name in MARKS}  # which runs saved before had not
    return MergeRules(ids, ranks, bool(text["of_characters"]), **marks)
