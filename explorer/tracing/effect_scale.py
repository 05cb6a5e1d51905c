"""How far a patched run is on the way between two others."""

import numpy as np

LEAST_DIFFERENCE = 1e-6  # between the metric of the clean and of the corrupted run; less has no effects


def share_of_difference(changes: np.ndarray, clean: float, corrupted: float) -> np.ndarray:
    """Changes of a metric as shares of the difference between the clean and the corrupted run; NaN where that is less
    than 1e-6: then there is nothing to explain."""
    if abs(clean - corrupted) < LEAST_DIFFERENCE:
        return np.full_like(changes, np.nan)
    return changes / (clean - corrupted)


def effect(patched: np.ndarray, clean: float, corrupted: float, direction: str) -> np.ndarray:
    """How far patched runs are on the way between the two (Heimersheim & Nanda 2024, arXiv:2404.15255).

    (m − m(corrupted)) / (m(clean) − m(corrupted)) where the corrupted run was denoised: 0 where nothing was gained, 1
    where all was. (m − m(clean)) / (m(clean) − m(corrupted)) where the clean run was noised: 0 where nothing was lost,
    −1 where all was.
    """
    return share_of_difference(patched - (corrupted if direction == "denoise" else clean), clean, corrupted)
