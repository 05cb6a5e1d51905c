"""Mutation testing with chosen bugs: plant each in the code, and run the tests that should catch it.

`python -m tests.benchmarks.planted_bugs [WORD …]` prints a line per bug, and how many no test caught. It works on a
copy of the repository. A bug is found by its text alone, so renamed files and moved lines do not matter; a text that
does not occur exactly once is reported as stale.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE, SUFFIXES = ("explorer", "model"), (".py", ".js")
PRELOADED = ("gradio", "gradio_client", "plotly.graph_objects", "playwright.sync_api", "torch", "pytest")
TIMEOUT_S = 900
SUITE = "not exhaustive and not by_hand"  # as .ci/run

# Test files -> (text of the code, text with the bug).
BUGS = {
    # The model
    "model/layers/test_attention.py": [
        ("exps.sum(dim, keepdim=True)", "exps.sum(-2, keepdim=True)"),
        ("device=device).tril(last)", "device=device).tril(last + 1)"),
        ("allowed.triu(last - window + 1)", "allowed.triu(last - window)"),
        ("return allowed if padding is None else allowed & padding[:, None, None, :]", "return allowed"),
        ("if padding is None and num_queries == num_keys:", "if padding is None:"),
        ("cap is None else cap * torch.tanh(x / cap)", "cap is None else torch.tanh(x / cap)"),
    ],
    "model/layers/test_multihead_attention.py": [
        ("self.o_proj(z.transpose(1, 2).flatten(-2))", "self.o_proj(z.reshape(x.shape[0], x.shape[1], -1))"),
        (
            "return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)",
            "return x.unflatten(-1, (-1, num_heads)).movedim(-1, 1)",
        ),
        ("x.repeat_interleave(num_heads // x.shape[1], dim=1)", "x.repeat(1, num_heads // x.shape[1], 1, 1)"),
        ("self.score_divisor, self.window)\n        k, v", "None, self.window)\n        k, v"),
    ],
    "model/layers/test_rope.py": [
        (
            "pairs = torch.stack((a * cos - b * sin, a * sin + b * cos)",
            "pairs = torch.stack((a * cos + b * sin, b * cos - a * sin)",
        ),
        ("a, b = x[..., 0::2], x[..., 1::2]\n    pairs", "b, a = x[..., 0::2], x[..., 1::2]\n    pairs"),
    ],
    "model/layers/test_rope_scaling.py": [
        ("(rotary_dim or d_head) // 2] = scaling", "(rotary_dim or d_head)] = scaling"),
        ("unscaled_fraction = 1 - yarn_ramp(", "unscaled_fraction = yarn_ramp("),
        ("((turns - low) / (high - low)).clamp(0, 1)", "((turns - low) / high).clamp(0, 1)"),
        ("scaling.factor ** (1 / last)", "scaling.factor ** last"),
    ],
    "model/layers/test_norms.py": [
        ("x32.square().mean(-1, keepdim=True) + self.eps", "x32.square().mean(-1, keepdim=True)"),
        ("x32 = x.float()\n        inverse_rms", "x32 = x\n        inverse_rms"),
        ("centred.square().mean(-1, keepdim=True) + eps", "x32.square().mean(-1, keepdim=True) + eps"),
    ],
    "model/layers/test_sinusoidal.py": [
        (
            "torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)",
            "torch.cat((angles.sin(), angles.cos()), dim=-1)",
        ),
    ],
    "model/generation/test_sampling.py model/generation/test_draws.py": [
        (
            "np.exp((scores - scores.max()) / (temperature or 1.0))",
            "np.exp(scores - scores.max()) / (temperature or 1.0)",
        ),
        ("top_p_indices(weights / weights.sum(), top_p)", "top_p_indices(weights, top_p)"),
        ("np.where(logits[ids] > 0, 1 / penalty, penalty)", "1 / penalty"),
        ("[-surplus:])\n", "[:surplus])\n"),
        ("likely = np.flatnonzero(weights >= min_p)", "likely = np.flatnonzero(weights > min_p)"),
        ("return top_k_indices(probabilities, index + 1)", "return top_k_indices(probabilities, index + 2)"),
        ('f"{seed} {position}".encode()', 'f"{seed}{position}".encode()'),
    ],
    "model/generation/test_autoregressive.py": [
        ("uniform_draw(seed, position=num_dropped + len(ids))", "uniform_draw(seed, position=len(ids))"),
        ("if self.cache is None or start != self.start:", "if self.cache is None:"),
        (
            "self.tail = text[max(0, len(text) - self.longest + 1) :]",
            "self.tail = text[max(0, len(text) - self.longest + 2) :]",
        ),
        ("if token_id in stop_tokens or stopped_by is not None:", "if stopped_by is not None:"),
    ],
    "model/test_tokenizer.py": [
        (
            "pieces = (*pieces[:index], merged, *pieces[index + 2 :])",
            "pieces = (*pieces[:index], merged, *pieces[index + 1 :])",
        ),
    ],
    "model/test_parameter_and_flop_counts.py": [
        ("norm_placement] * L + (c.norm_placement", "norm_placement] * L - (c.norm_placement"),
        ("sum(min(window, num_positions) for window in windows)", "sum(windows)"),
        ("return 2 * config.num_layers * config.kv_heads *", "return 2 * config.num_layers * config.num_heads *"),
    ],
    # Analyses of a run
    "explorer/analysis/test_attention.py": [
        (
            "return patterns[head] * projected_value_norms(trace, layer, head)",
            "return patterns[head] * projected_value_norms(trace, layer, head)[:, None]",
        ),
        ("[:, head * d : (head + 1) * d]  # (D, d)\n    return np.linalg", "[:, : d]  # (D, d)\n    return np.linalg"),
        (
            'heads.max(0) if kind == "chosen_max" else heads.mean(0)',
            'heads.mean(0) if kind == "chosen_max" else heads.max(0)',
        ),
        ("q, keys = q[query], keys[: query + 1]", "q, keys = q[query], keys[:query]"),
        ("    return q[query] * keys[key] / trace", "    return q[key] * keys[query] / trace"),
    ],
    "explorer/analysis/test_next_token.py": [
        (
            "return int((self.plain > self.plain[token_id]).sum()) + 1",
            "return int((self.plain > self.plain[token_id]).sum())",
        ),
        ("p[has] * (np.log2(p[has]) - np.log2(q[has]))", "q[has] * (np.log2(p[has]) - np.log2(q[has]))"),
        ("previous=trace.token_ids[:following])", "previous=trace.token_ids[:position])"),
        ("- trace.logits.summary.next_logit) / np.log(2)", "- trace.logits.summary.next_logit)"),
        ("uniform_draw(seed, start + following)", "uniform_draw(seed, following)"),
        ("return np.concatenate([[np.nan], trace.logits.entropy[:-1]])", "return trace.logits.entropy"),
    ],
    "explorer/analysis/test_sampling_table.py": [
        ("(np.cumsum(in_top_k) - in_top_k) / in_top_k.sum()", "np.cumsum(in_top_k) / in_top_k.sum()"),
        ("max(0.0, end - float(probabilities[i])), end)", "max(0.0, end - float(probabilities[i])), 1.0)"),
    ],
    "explorer/analysis/test_head_scores.py": [
        ("(token_ids[:, None] == token_ids) & (key < query)", "(token_ids[:, None] == token_ids) & (key <= query)"),
        ("(last >= 0) & (key == last + 1)", "(last >= 0) & (key == last)"),
        ("np.eye(len(token_ids), k=-1, dtype=bool)", "np.eye(len(token_ids), k=1, dtype=bool)"),
        ("rest[..., 0] = 0\n", "rest[..., -1] = 0\n"),
        ("return -(rows * logs).sum(-1) / np.log2(num_visible)", "return -(rows * logs).sum(-1)"),
    ],
    "explorer/analysis/test_logit_lens.py": [
        ("np.exp(top_logits - log_total[:, None])", "np.exp(top_logits - log_total[0])"),
        ("np.tile(np.array(positions), len(x))", "np.repeat(np.array(positions), len(x))"),
        (
            'bits = (np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums) / np.log(2)',
            'bits = np.log(sums) - np.einsum("tv,tv->t", exps, shifted) / sums',
        ),
    ],
    "explorer/analysis/test_direct_logit_attribution.py": [
        (
            "shift -= effective_logit_bias(trace, contrast_id, position)",
            "shift += effective_logit_bias(trace, contrast_id, position)",
        ),
        (
            "direction = direction - logit_direction(trace, contrast_id, position)",
            "direction = logit_direction(trace, contrast_id, position) - direction",
        ),
        (
            "values = np.repeat(values, config.num_heads // len(values), axis=0)",
            "values = np.tile(values, (config.num_heads // len(values), 1, 1))",
        ),
        ("row = row * config.embedding_scale", "row = row * 1"),
    ],
    "explorer/analysis/test_positions.py": [
        (
            "= angles[query].astype(np.float64) - angles[key]  # (F,)",
            "= angles[key].astype(np.float64) - angles[query]  # (F,)",
        ),
        ("q * k.conj() * pair_scales(trace, layer) ** 2", "q * k.conj() * pair_scales(trace, layer)"),
        ('vector.reshape(-1, 2) if layout == "adjacent" else vector.reshape(2, -1).T', "vector.reshape(-1, 2)"),
    ],
    "explorer/analysis/test_kv_cache.py": [
        ("    return n, n * (n + 1) // 2", "    return n, n * n // 2"),
        (
            "bytes_per_token * config.num_heads // config.kv_heads",
            "bytes_per_token * config.kv_heads // config.num_heads",
        ),
    ],
    # A request and its run
    "explorer/state/test_token_alignment.py": [
        ("if costs[i, j] == costs[i - 1, j - 1] + step:", "if costs[i, j] == costs[i - 1, j - 1]:"),
        (
            "[None if index is None else index + b + 1 for index in segment]",
            "[None if index is None else index + b for index in segment]",
        ),
    ],
    "explorer/state/test_continuation_tree.py": [
        ("        branches = branches[1:]", "        branches = branches[:-1]"),
        ("if branch.path[: len(path)] != path)", "if branch.path != path)"),
    ],
    "explorer/interventions/test_text.py explorer/interventions/test_validation.py": [
        ("first <= merged[-1][1] + 1", "first <= merged[-1][1] + 2"),
        ("(last is None or position <= last)", "(last is None or position < last)"),
    ],
    "explorer/tracing/test_interventions.py explorer/tracing/test_generation_with_interventions.py": [
        ("return x - (x @ unit)[..., None] * unit", "return x + (x @ unit)[..., None] * unit"),
        ("axis = 1 if output.ndim == 4 else -1", "axis = -1"),
        ("positions = range(self.start, self.start + output.shape[-2])", "positions = range(output.shape[-2])"),
        ("linalg.vector_norm(x, dim=-1, keepdim=True) * unit", "linalg.vector_norm(x) * unit"),
        ("np.where(mask, self.amount, value), np.where", "np.where(mask, 0.0, value), np.where"),
    ],
    "explorer/diagnosis/test_packages.py": [
        ('while (folder / "__init__.py").is_file() or len(parts) <= file.import_level:', "while False:"),
        ('(top in OUR_PACKAGES or "site-packages" not in Path(file).parts)', "(top in OUR_PACKAGES)"),
        ("        sys.path[:] = before\n        importlib", "        importlib"),
        ("return tables if len(counts) == 1 else []", "return tables"),
        ('flag.lstrip("-").replace("-", "_")', 'flag.lstrip("-")'),
    ],
    "explorer/web/actions/test_adapters.py": [
        ('query.keys().isdisjoint(("checkpoint", *SECOND_RUN_FIELDS))', "query is not None"),
        ("self.base_models[name] = self._open_base_model(path)", "self.base_models[name] = name"),
    ],
    "explorer/tracing/test_trace.py": [
        ("return pattern in self.values or pattern in self._tap_patterns", "return pattern in self.values"),
    ],
    "explorer/tracing/test_lru_cache.py": [
        ("popitem(last=False)\n                self.total", "popitem(last=True)\n                self.total"),
        ("self.total -= self.size(oldest)", "self.total -= 0"),
    ],
    "explorer/tracing/test_logits.py": [
        ("(logits[:token_id] == logits[token_id]).sum()) + 1", "(logits[token_id:] == logits[token_id]).sum()) + 1"),
        ("if sorted_position != position:", "if sorted_position is None:"),
    ],
    # Figures
    "explorer/views/test_drawn_cells.py explorer/views/test_attention.py": [
        ("weights=np.where(np.tri(len(trace), dtype=bool), values, np.nan)", "weights=values.T"),
        ('N_("query %{{y}} → key %{{x}}<br>', 'N_("query %{{x}} → key %{{y}}<br>'),
        ("query_range=[queries[-1] + 0.5, queries[0] - 0.5]", "query_range=[queries[0] - 0.5, queries[-1] + 0.5]"),
    ],
    "explorer/views/test_attention_lines.py": [
        (
            "levels = np.digitize(weights[rows, columns], OPACITIES)",
            "levels = np.digitize(weights[columns, rows], OPACITIES)",
        ),
        (
            "ends = np.stack([rows, columns], axis=1) + visible.start",
            "ends = np.stack([columns, rows], axis=1) + visible.start",
        ),
        (
            "weight_hover(weights, *((query, i) if x else (i, key)))",
            "weight_hover(weights, *((i, key) if x else (query, i)))",
        ),
    ],
    "explorer/views/test_drawn_bars.py": [
        ('pattern"][head, query, : query + 1]\n    strongest', 'pattern"][head, : query + 1, query]\n    strongest'),
        ('"chosen_weight": [weights[key]]', '"chosen_weight": [weights[0]]'),
        ("[i == highlighted for i in positions]", "[i == highlighted + 1 for i in positions]"),
    ],
    "explorer/views/test_graph_objects.py": [
        ("value.size or name in LIST_SETTINGS", "value.size"),
        ("base64.b64encode(np.ascontiguousarray(value))", 'base64.b64encode(value.tobytes(order="F"))'),
    ],
    "explorer/views/test_rope.py explorer/views/test_drawn_positions.py": [
        ("tips = centres + values / max_norm", "tips = centres + values[:, ::-1] / max_norm"),
        ("here = query - key\n    return DISTANCES_FIGURE", "here = key\n    return DISTANCES_FIGURE"),
    ],
    "explorer/views/test_kv_cache.py": [
        ("np.where(np.arange(len(trace)) <= query, norms", "np.where(np.arange(len(trace)) < query, norms"),
        ("now=(query + 1) * position_bytes,", "now=query * position_bytes,"),
    ],
    "explorer/views/test_tokens.py": [
        ("step if step and step.index == index else None)", "step if step else None)"),
        ("            start += len(piece)", "            start += 1"),
    ],
    "explorer/views/test_two_runs_scale.py": [
        ('"zmin": min(trace_a["zmin"], trace_b["zmin"])', '"zmin": trace_a["zmin"]'),
    ],
    # The page, in Python
    "explorer/web/browser_api/test_answer_cache.py": [
        (
            "settings, current_locale(), self.model_identities(page_state)",
            "settings, self.model_identities(page_state)",
        ),
        (
            "key = about, stage, replace(page_state, turn=0), settings,",
            "key = about, stage, replace(page_state, turn=0),",
        ),
        ("        if not is_incomplete():\n            self._cache", "        if True:\n            self._cache"),
    ],
    "explorer/web/browser_api/test_shared_answers.py": [
        (
            "settings.as_dict(), current_locale(), models, code_version()]",
            "settings.as_dict(), current_locale(), code_version()]",
        ),
    ],
    "explorer/web/test_rate_limits.py": [
        ("times[len(times) - int(limit)] + self", "times[-1] + self"),
        ('("visitor", client.name or client.address)', '("visitor", "")'),
    ],
    "explorer/web/test_security.py explorer/web/test_security_middleware.py": [
        ("name.endswith(pattern[1:]))", "name.endswith(pattern[2:]))"),
        ('"object-src": "\'none\'"', '"object-src": "\'self\'"'),
        ('"frame-ancestors": "\'self\' https', '"frame-ancestors": "* https'),
    ],
    # The page's scripts
    "explorer/web/test_scripts.py -k sampling": [
        (
            "return { probabilities: remaining.map((weight) => weight / total), weights, counts }",
            "return { probabilities: remaining, weights, counts }",
        ),
        ("while (min_p && weights[counts.min_p - 1] < min_p)", "while (min_p && weights[counts.min_p - 1] <= min_p)"),
        (
            "(_none, i) => Math.exp((scores[i] - scores[0]) / temperature)",
            "(_none, i) => Math.exp((scores[i] - scores[0]) * temperature)",
        ),
    ],
    "explorer/web/widgets/test_next_token.py": [
        ("hasFallen = first.logits[1] < first.logits[0]", "hasFallen = first.logits[1] > first.logits[0]"),
        ('(previousLimits.includes(cut_by) ? "" : ', "("),
    ],
    "explorer/web/test_scripts.py -k state": [
        ("(candidate.key > candidate.query ? { ...candidate, key: candidate.query } : candidate)", "candidate"),
        ('replace(/\\/step-\\d{1,9}$/, "")', 'replace(/\\/step-\\d{1,2}$/, "")'),
    ],
    "explorer/web/test_scripts.py -k token_alignment": [
        ("if (positions[i] !== null) return positions[i];\n", "return positions[i];\n"),
        ("nearestPartner(alignment.back, mapped[name])", "nearestPartner(alignment.partners, mapped[name])"),
    ],
    "explorer/web/test_scripts.py -k bitmap": [
        ("[blue, green, red].forEach(", "[red, green, blue].forEach("),
        ("setInt32s(14, 40, width, -height)", "setInt32s(14, 40, width, height)"),
        ("Math.ceil(width / 4) * 4", "width"),
    ],
    "explorer/web/test_scripts.py -k history": [
        ("if (text && text !== String(ADDRESS_DEFAULTS[name]))", "if (text)"),
    ],
    "explorer/web/test_scripts.py -k roving": [
        (
            "ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };\n",
            "ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };\n",
        ),
        ("(round ? (index + count) % count :", "(round ? index % count :"),
    ],
    "explorer/web/test_scripts.py -k colour": [
        ("0.2126 * r + 0.7152 * g + 0.0722 * b", "0.0722 * r + 0.7152 * g + 0.2126 * b"),
        ('> 1.05 * 0.05 ? "black" : "white"', '> 1.05 * 0.05 ? "white" : "black"'),
    ],
    "explorer/web/test_scripts.py -k search": [
        ("return PREFIX - lengthPenalty;", "return PREFIX + lengthPenalty;"),
        (
            'return [{ kind: "head", layer: heads[0], index: heads[1] }]',
            'return [{ kind: "head", layer: heads[1], index: heads[0] }]',
        ),
    ],
    "explorer/web/test_scripts.py -k token_player": [
        ("if (isBusy()) return wait(BUSY_RETRY_MS);", ""),
    ],
    "explorer/web/test_scripts.py -k shown_tokens": [
        ("if (change.turn < state.turn) return false;", ""),
        ("change.generated.length - steps.length + count)", "change.generated.length - steps.length + count + 1)"),
    ],
    "explorer/web/test_scripts.py -k room": [
        (
            'const PERSONAL_FIELDS = ["lang", "turn", "version", "move", "own", "reply", "guess"];',
            'const PERSONAL_FIELDS = ["lang", "turn", "version", "move", "own", "guess"];',
        ),
        ("room.key ? null : room.code);", "room.code);"),
    ],
    # The page, in a browser
    "browser/test_sliders.py browser/test_settings.py": [
        ("cumulative.findIndex((end) => end > content.u)", "cumulative.findIndex((end) => end < content.u)"),
        ("stretch.style.left = `${100 * start}%`;", "stretch.style.left = `${100 * end}%`;"),
        ("100 * scale * barLength(row.plain, isLog)", "100 * scale * barLength(row.probability, isLog)"),
        (
            "(isLog ? Math.max(0, 1 + Math.log10(Math.abs(probability)) / DECADES)",
            "(isLog ? Math.max(0, 1 - Math.log10(Math.abs(probability)) / DECADES)",
        ),
    ],
    "browser/test_plotly_figures.py": [
        ("if (!cellText || !isWithin(xaxis, left) || !isWithin(yaxis, top)) return;", "if (!cellText) return;"),
        ("const cellText = trace.text[row]?.[column];", "const cellText = trace.text[column]?.[row];"),
    ],
    "browser/test_languages.py": [
        ('link.searchParams.delete("lang"); // recipients', "// recipients"),
    ],
    "browser/test_token_drawing.py browser/test_tokens.py browser/test_selection.py": [
        ('chip.classList.toggle("key", position === key);', 'chip.classList.toggle("key", position === query);'),
        ("chip.ariaSelected = String(chip === selected);", "chip.ariaSelected = String(chip !== selected);"),
        (
            'chip.style.setProperty("--share", String(Math.abs(shares[i] ?? 0)));',
            'chip.style.setProperty("--share", String(Math.abs(shares[i + 1] ?? 0)));',
        ),
    ],
    "browser/test_attention_lines.py": [
        ("{ [SIDES[+(acrossShare > 0.5)]]: token }", "{ [SIDES[+(acrossShare < 0.5)]]: token }"),
    ],
    "browser/test_map_drawing.py": [
        ("drawShape(node, kind, box, share);", "drawShape(node, kind, box, 1 - share);"),
        ("y: y + (i - (lines.length - 1) / 2) * LINE_HEIGHT", "y: y - (i - (lines.length - 1) / 2) * LINE_HEIGHT"),
    ],
    "browser/test_history.py browser/test_url.py": [
        ("history.pushState(...historyEntry());", "history.replaceState(...historyEntry());"),
    ],
    "browser/test_whole_model.py -k curve_widths": [
        ("+((maxWidth * norm) / maxNorm).toFixed(2))", "+((maxWidth * maxNorm) / norm).toFixed(2))"),
        ('"data-head": `${l}.${h}`, "data-key": key,', '"data-head": `${h}.${l}`, "data-key": key,'),
        ('sign: value < 0 ? "takes" : "adds", opacity', 'sign: value < 0 ? "adds" : "takes", opacity'),
    ],
    "browser/test_whole_model.py -k levels_open": [
        ('{ open: "" } : { open: "block", layer: l }),', '{ open: "" } : { open: "block", layer: l - 1 }),'),
        ("{ query: tokenText(position), key: isFold", "{ query: tokenText(query), key: isFold"),
        ("if (level) crumbs.push(", "if (level && level !== 'block') crumbs.push("),
    ],
    "browser/test_head_table.py": [
        (
            "descending: sortColumn === sorting.column ? !sorting.descending : sortColumn >= 0",
            "descending: sortColumn >= 0",
        ),
        (
            "inspect({ x: cell.cellIndex - 1, y: 0, layer, head });",
            "inspect({ x: cell.cellIndex, y: 0, layer, head });",
        ),
        ("row: sortedRows.indexOf(cell.parentElement) + 1,", "row: rows.indexOf(cell.parentElement) + 1,"),
        ("Math.floor(i / value.heads), i % value.heads,", "i % value.heads, Math.floor(i / value.heads),"),
    ],
    "browser/test_selection.py -k cell": [
        (
            "point.customdata : tokenPosition(point, source);",
            'point.customdata : tokenPosition(point, source === "x" ? "y" : "x");',
        ),
    ],
    "browser/test_depth.py": [
        (
            'classList.toggle("simple", depth === "story")',
            'classList.toggle("simple", depth !== "numbers")',
        ),
        (
            "DEEPER_VIEWS[storyView]?.includes(view)) ?? STORY_TABS[0]",
            "DEEPER_VIEWS[storyView]?.includes(view)) ?? STORY_TABS[1]",
        ),
    ],
    "browser/test_badges_and_derivations.py": [
        ("if (!isCurrent()) setOpen(false);", "if (isCurrent()) setOpen(false);"),
    ],
    "browser/test_settings.py": [
        (
            "if (rowBeforeChange && rowBeforeChange.token_id !== shownContent.drawn) {",
            "if (rowBeforeChange && rowBeforeChange.token_id === shownContent.drawn) {",
        ),
        ('element.classList.toggle("found", row.found);', 'element.classList.toggle("found", Boolean(row.cut_by));'),
    ],
    "browser/test_menus.py": [
        ('if (event.key !== "Escape" || !menu.open) return;', 'if (event.key !== "Escape" || menu.open) return;'),
        ("if (!menu.contains(/** @type {Node} */ (target))) menu.open = false;", "menu.open &&= true;"),
    ],
    "browser/test_branches.py browser/test_generation.py": [
        ("query = steps[count - 1];", "query = steps[0];"),
    ],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="plant only bugs whose tests, file or text have one of these words")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to test, such as another work tree")
    parser.add_argument("--check", action="store_true", help="only tell which texts are stale")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.dont_write_bytecode = False  # otherwise each run would compile its imports again
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_repository(args.root.resolve(), Path(folder))
        files = {path: path.read_text("utf-8") for path in iter_code(copy)}
        counts = dict.fromkeys(("caught", "missed", "stale"), 0)
        if not args.check:
            preload()
        for tests, bugs in BUGS.items():
            is_failing = None  # whether the tests fail without a bug
            for text, bug in bugs:
                places = [path for path, source in files.items() if text in source]
                name = f"{places[0].relative_to(copy) if places else '?'}: {text.strip()!r}"
                if args.words and not any(word in f"{tests} {name}" for word in args.words):
                    continue
                if len(places) != 1 or files[places[0]].count(text) != 1 or not all(find_tests(copy, tests)):
                    outcome, seconds = "stale", 0.0
                elif args.check:
                    continue
                else:
                    is_failing = run_tests(copy, tests)[0] if is_failing is None else is_failing
                    outcome, seconds = "failing", 0.0
                    if not is_failing:
                        with plant(places[0], files[places[0]].replace(text, bug)):
                            failed, seconds = run_tests(copy, tests)
                        outcome = "caught" if failed else "missed"
                counts[outcome] = counts.get(outcome, 0) + 1
                print(f"{outcome:7} {seconds:4.0f} s  {tests}  {name} → {bug.strip()!r}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))


def copy_repository(root: Path, folder: Path) -> Path:
    """Copy all files that Git tracks or would add, and return the folder of the copy."""
    listing = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root, text=True)
    for name in filter(None, listing.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    return folder


@contextmanager
def plant(path: Path, source: str) -> Iterator[None]:
    """Change a file within the block; then restore its content, and its time so that its bytecode stays valid."""
    before, times = path.read_bytes(), path.stat()
    path.write_text(source, "utf-8")
    yield
    path.write_bytes(before)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def iter_code(root: Path) -> Iterator[Path]:
    return (path for package in CODE for path in (root / package).rglob("*") if path.suffix in SUFFIXES)


def preload():
    """Import the libraries, so that every forked test run has them."""
    for name in PRELOADED:
        __import__(name)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", *CODE)]:
        del sys.modules[name]


def run_tests(root: Path, tests: str) -> tuple[bool, float]:
    """Run tests in a fork of this process; return whether one failed, and the seconds taken.

    A run that takes too long counts as failed.
    """
    start, child = time.monotonic(), os.fork()
    if not child:
        os.setsid()
        os.chdir(root)
        log = os.open(root / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.path[:] = [str(root), *(path for path in sys.path if path and Path(path).resolve() != ROOT)]
        signal.alarm(TIMEOUT_S)
        import pytest

        os._exit(pytest.main([*find_tests(root, tests), "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", SUITE]))
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1) and code != -signal.SIGALRM:
        print((root / "pytest.log").read_text("utf-8", "replace")[-3000:], file=sys.stderr)
    return code != 0, time.monotonic() - start


def find_tests(root: Path, tests: str) -> list[str]:
    """Return pytest's arguments; a moved test file is found by its name, and a missing one is ""."""

    def locate(name: str) -> str:
        path = root / "tests" / name
        return str(path if path.exists() else next((root / "tests").rglob(path.name), ""))

    return [locate(word) if word.endswith(".py") else word for word in tests.split()]


if __name__ == "__main__":
    main()
