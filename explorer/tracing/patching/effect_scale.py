"""Normalised effects of patching: 0 for one run, ±1 for the other."""

import numpy as np

MIN_DIFFERENCE = 1e-6  # between the metric of the clean and of the corrupted run; less has no effects


def normalise_changes(changes: np.ndarray, clean: float, corrupted: float) -> np.ndarray:
    """Return changes of a metric as shares of the difference between the clean and the corrupted run.

    NaN if that difference is less than 1e-6: then there is nothing to explain.
    """
    if abs(clean - corrupted) < MIN_DIFFERENCE:
        return np.full_like(changes, np.nan)
    return changes / (clean - corrupted)


def normalised_effect(patched: np.ndarray, clean: float, corrupted: float, direction: str) -> np.ndarray:
    """Return the normalised effects of patched runs (Heimersheim & Nanda 2024, arXiv:2404.15255).

    (m − m(corrupted)) / (m(clean) − m(corrupted)) if the corrupted run was denoised: 0 if nothing was gained, 1 if
    all was. (m − m(clean)) / (m(clean) − m(corrupted)) if the clean run was noised: 0 if nothing was lost, −1 if
    all was.
    """
    return normalise_changes(patched - (corrupted if direction == "denoise" else clean), clean, corrupted)
