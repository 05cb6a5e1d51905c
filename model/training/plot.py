"""Curves over training steps, as a picture for a model card."""

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 48, 150, 28, 44  # pixels, the last four margins
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
TEXT = "#808080"  # legible on white and on black


def curves_svg(steps: Sequence[int], curves: Mapping[str, Sequence[float]], ylabel: str) -> str:
    """An SVG of values between 0 and 1 by step; steps are on a logarithmic axis, on which 0 has the place of 1/2."""
    positions = [math.log2(max(step, 0.5)) for step in steps]
    first, last = positions[0], positions[-1]

    def x(position: float) -> float:
        return LEFT + (position - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}" stroke="{TEXT}55"/>')
        parts.append(text(LEFT - 8, y(value) + 4, f"{value:g}", "end"))
    every = -(-len(steps) // 8)  # label, from the last one back
    for step, position in list(zip(steps, positions, strict=True))[::-every]:
        parts.append(text(x(position), HEIGHT - BOTTOM + 18, f"{step:,}"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "training step"))
    parts.append(text(4, TOP - 14, ylabel, "start"))
    ends = sorted(((values[-1], name) for name, values in curves.items()), reverse=True)
    label_y = {name: max(y(value), TOP + 16 * i) + 4 for i, (value, name) in enumerate(ends)}
    for color, (name, values) in zip(COLORS, curves.items(), strict=False):
        points = " ".join(f"{x(p):.1f},{y(v):.1f}" for p, v in zip(positions, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(p):.1f}" cy="{y(v):.1f}" r="3" fill="{color}"/>'
            for p, v in zip(positions, values, strict=True)
        ]
        parts.append(text(WIDTH - RIGHT + 10, label_y[name], name, "start", color))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n{body}\n</svg>\n'
    )


def text(x: float, y: float, words: str, anchor: str = "middle", color: str = TEXT) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(words)}</text>'
