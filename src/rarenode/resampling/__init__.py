"""Resampling: rows that are trained on more than once, because what they carry is rare."""

from rarenode.resampling.by_name import RESAMPLING, ResamplingName, make_resampler
from rarenode.resampling.hros_pd import HROSPD
from rarenode.resampling.lp_ros import LPROS
from rarenode.resampling.resampler import Resampled, Resampler

__all__ = ["HROSPD", "LPROS", "RESAMPLING", "Resampled", "Resampler", "ResamplingName", "make_resampler"]
