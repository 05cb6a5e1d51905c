"""One number at a time: how it comes about, worked out again."""

from explorer.explain.inspection.inspection import Inspection, Point
from explorer.explain.inspection.tap import inspect

__all__ = ["Inspection", "Point", "inspect"]
