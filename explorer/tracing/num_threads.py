"""Number of threads of matrix products."""

import torch

from model.config import ModelConfig
from model.parameter_and_flop_counts import num_parameters

CORES = torch.get_num_threads()  # that PyTorch would take
FEW_PARAMETERS = 100_000_000  # a second core makes products of so few no faster


def set_num_threads(config: ModelConfig):
    """Set one thread per product for small models, else all cores, for threads that start from now on.

    If several requests compute at a time, each product's threads would wait for those of others. The number stays
    as it is:
    products round differently with another, and two equal runs would differ.
    """
    torch.set_num_threads(1 if num_parameters(config) < FEW_PARAMETERS else CORES)
