"""Resampling: training rows with rare labels are repeated."""

from rarenode.resampling.hros_pd import HROSPD
from rarenode.resampling.lp_ros import LPROS
from rarenode.resampling.resampler import RESAMPLING, Resampled, Resampler, make_resampler

__all__ = ["HROSPD", "LPROS", "RESAMPLING", "Resampled", "Resampler", "make_resampler"]
