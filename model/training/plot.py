"""SVG curves over training steps, for a model card."""

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

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
