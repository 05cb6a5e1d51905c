"""One number at a time: how it comes about, worked out again."""

from explorer.inspection.inspection import Inspection, Point
from explorer.inspection.tap import inspect

__all__ = ["Inspection", "Point", "inspect"]
