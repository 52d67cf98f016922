"""How unsure an ensemble is about each node of each row.

Every kind takes the members' probabilities ``p`` (members, ...) of a binary node and returns (...). With ``mu`` the
mean over members, ``sigma`` their standard deviation (divisor members - 1; 0 for a single member), H the binary
entropy, and logarithms to the base 2:

=================  =====================================================================================================
``bbma``           1 - 2 (max(mu, 1 - mu) - 1/2): the Bayesian model average, 1 at mu = 1/2
``gmu``            1 - (2 mu_max - 1)(1 - exp(-SNR)), SNR = (2 mu_max - 1) / (2 sigma + 1e-10): gated margin uncertainty
``epistemic_kl``   mean over ordered pairs of different members of KL(p_i || p_j)
``epistemic_js``   the same with the Jensen-Shannon divergence; at most 1
``predictive``     H(mu)
``aleatoric``      mean of H(p_i)
=================  =====================================================================================================

Uncertainties weigh a loss; they are never a path for the gradient, which would push members towards each other.

Where members are in different processes, `joint_uncertainty` computes the same from sums over members, so that one to
three numbers for each node cross between processes. Only the Jensen-Shannon divergence is no function of such sums,
because it has the entropy of the mean of every pair: for it, the probabilities of all members cross.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode.errors import ArgumentError

VECTOR = 64
"""A multiple of what torch computes at a time: sums over members take four vectors of up to 16 numbers."""
SHARED = 1 << 15
"""From so many numbers on torch shares the work among threads."""

Probabilities = TypeVar("Probabilities", Tensor, NDArray[Any])


def check_kind(kind: object) -> None:
    """Refuse what is not a kind of uncertainty.

    Raises:
        ArgumentError: names the kinds.
    """
    if not isinstance(kind, str) or kind not in UNCERTAINTIES:
        raise ArgumentError(f"unknown uncertainty {kind!r}; choose one of {', '.join(UNCERTAINTIES)}")


def uncertainty(probs: Probabilities, kind: str) -> Probabilities:
    """The uncertainty of an ensemble, by node.

    Args:
        probs: the members' *unconstrained* probabilities, (members, ...), as a numpy array or a torch tensor.
        kind: ``bbma``, ``gmu``, ``epistemic_kl``, ``epistemic_js``, ``predictive`` or ``aleatoric``.

    Returns:
        (...), of the kind that was given, without gradient.

    >>> uncertainty(np.array([[0.5, 0.9], [0.5, 0.7]]), "bbma").round(6)
    array([1. , 0.4])
    """
    check_kind(kind)
    compute = UNCERTAINTIES[kind]
    tensor = (
        probs.detach() if isinstance(probs, Tensor) else torch.from_numpy(np.array(probs, dtype=_float_type(probs)))
    )
    tensor = tensor.to(torch.promote_types(tensor.dtype, torch.float32))
    if tensor.ndim == 0 or len(tensor) == 0:
        raise ArgumentError(
            f"probabilities must have members in the first dimension; got the shape {tuple(tensor.shape)}"
        )
    if not bool(((tensor >= 0) & (tensor <= 1)).all()):
        raise ArgumentError("probabilities must lie between 0 and 1; are these logits? apply the sigmoid first")
    if not isinstance(probs, Tensor):
        return _in_blocks(compute, tensor).numpy()
    result = compute(tensor)
    return result.to(probs.dtype) if probs.is_floating_point() else result


def bbma(probs: Tensor) -> Tensor:
    """1 - 2 (mu_max - 1/2), which is twice the probability of the less likely answer."""
    mu = _mean(probs)
    return 2 * torch.minimum(mu, 1 - mu)


def gmu(probs: Tensor) -> Tensor:
    """The margin of the average, trusted only as far as the members agree."""
    mu = _mean(probs)
    sigma = (_centred(probs).square().sum(0) / max(1, len(probs) - 1)).sqrt()
    return _gated_margin((2 * mu - 1).abs(), sigma)


def _gated_margin(margin: Tensor, sigma: Tensor) -> Tensor:
    snr = margin / (2 * sigma + 1e-10)
    return 1 - margin * -torch.expm1(-snr)


def epistemic_kl(probs: Tensor) -> Tensor:
    """Pairwise KL, without pairs: it is the sample covariance of p and logit(p).

    KL(p||q) + KL(q||p) = (p - q)(logit p - logit q) for two binary distributions, and the mean of a product of
    differences over all pairs is twice a covariance. Probabilities keep one machine epsilon away from 0 and 1, so
    that it is finite.
    """
    eps = torch.finfo(probs.dtype).eps
    p = probs.clamp(eps, 1 - eps)
    covariance = (_centred(p) * _centred(torch.logit(p))).sum(0) / max(1, len(probs) - 1)
    return covariance.clamp_min(0) / math.log(2)


def epistemic_js(probs: Tensor) -> Tensor:
    """Pairwise Jensen-Shannon divergence. Symmetric, so each unordered pair is computed once and counts twice."""
    members = len(probs)
    entropy = _entropy(probs)
    total = torch.zeros_like(probs[0])
    for apart in range(1, members):
        left, right = slice(apart, None), slice(None, -apart)
        mixed = _entropy((probs[left] + probs[right]) / 2)
        total += (mixed - (entropy[left] + entropy[right]) / 2).clamp_min(0).sum(0)
    return 2 * total / max(1, members * (members - 1))


def predictive(probs: Tensor) -> Tensor:
    """Entropy of the mean."""
    return _entropy(_mean(probs))


def aleatoric(probs: Tensor) -> Tensor:
    """Mean of the entropies."""
    return _entropy(probs).mean(0)


UNCERTAINTIES: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "bbma": bbma,
        "gmu": gmu,
        "epistemic_kl": epistemic_kl,
        "epistemic_js": epistemic_js,
        "predictive": predictive,
        "aleatoric": aleatoric,
    }
)


# --- of members in different processes -----------------------------------------------------------------------------

Total = Callable[[Tensor], Tensor]
"""The sum of a tensor over all processes, which each of them gets."""


def joint_uncertainty(probs: Tensor, kind: str, total: Total, members: int, first_member: int) -> Tensor:
    """The uncertainty of an ensemble of which this process has some members; the same but for rounding.

    Sums are float64, in which those of squares lose nothing that float32 would have kept.

    Args:
        probs: unconstrained probabilities of the members that are here, (members here, rows, nodes).
        kind: as for `uncertainty`.
        total: adds up over processes, all of which call this function.
        members: of the whole ensemble.
        first_member: how many members the processes before this one have.

    Returns:
        (rows, nodes), without gradient.
    """
    here = probs.detach()
    if kind == "epistemic_js":
        everyone = here.new_zeros(members, *here.shape[1:])
        everyone[first_member : first_member + len(here)] = here
        return epistemic_js(total(everyone))
    p = here.double()
    if kind == "aleatoric":
        found = total(_entropy(p).sum(0)) / members
    elif kind in ("bbma", "predictive"):
        found = UNCERTAINTIES[kind]((total(p.sum(0)) / members).clamp(0, 1).unsqueeze(0))
    elif kind == "gmu":
        mu, squares = total(torch.stack([p, p * p]).sum(1)) / members
        variance = (squares - mu * mu).clamp_min(0) * (members / max(1, members - 1))
        found = _gated_margin((2 * mu - 1).abs(), variance.sqrt())
    else:
        eps = torch.finfo(here.dtype).eps
        p = p.clamp(eps, 1 - eps)
        logit = torch.logit(p)
        mu, mean_logit, product = total(torch.stack([p, logit, p * logit]).sum(1)) / members
        covariance = (product - mu * mean_logit) * (members / max(1, members - 1))
        found = covariance.clamp_min(0) / math.log(2)
    return found.to(here.dtype)


def _in_blocks(compute: Callable[[Tensor], Tensor], probs: Tensor) -> Tensor:
    """As ``compute``, except that the uncertainty of a node depends on its own probabilities alone, to the last bit.

    torch rounds differently where a vector, or the share of a thread, is not full. So it gets full vectors only, and
    so few at a time that it does not share them.
    """
    cells = probs.reshape(len(probs), math.prod(probs.shape[1:]))
    step = max(VECTOR, (SHARED - 1) // len(probs) // VECTOR * VECTOR)
    result = probs.new_empty(cells.shape[1])
    for first in range(0, cells.shape[1], step):
        some = cells[:, first : first + step]
        count = some.shape[1]
        block = some.new_zeros(len(some), -(-count // VECTOR) * VECTOR)
        block[:, :count] = some
        result[first : first + count] = compute(block)[:count]
    return result.reshape(probs.shape[1:])


def _mean(probs: Tensor) -> Tensor:
    """Mean over members; exactly the common value where members agree."""
    return probs[0] + (probs - probs[0]).mean(0)


def _centred(values: Tensor) -> Tensor:
    """Values less their mean over members; exactly 0 where members agree, which a plain mean does not promise."""
    shifted = values - values[0]
    return shifted - shifted.mean(0)


def _entropy(probs: Tensor) -> Tensor:
    """Binary entropy in bits; 0 at 0 and 1."""
    return -(torch.xlogy(probs, probs) + torch.xlogy(1 - probs, 1 - probs)) / math.log(2)


def _float_type(array: Any) -> type[np.floating[Any]]:
    return np.float32 if getattr(array, "dtype", None) == np.float32 else np.float64
