# SPDX-License-Identifier: Apache-2.0
"""What `differentiate` and `parallelize` are told of a model."""
from __future__ import annotations

from ctypes import byref
from typing import Any, Iterable, Mapping

from . import _structs as c
from ._library import did_you_mean, encoded, lib, must, strings
from .errors import InvalidError, listed

AUTO = -1.0  # GANTRY_LOSS_SCALE_AUTO
# As GANTRY_TRAIN_OPTIONS_INIT has them.
NUMBERS = {"learning_rate": 0.01, "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": -1.0, "clip_norm": 0.0}


def _number(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0) or not hasattr(value, "__float__"):
        raise InvalidError(f"{name} is {value!r}; it must be a number")
    return float(value)


def _optimizer(word: Any) -> int:
    names = [member.name.lower() for member in c.Optimizer]
    if word is None or word in names:
        return int(c.Optimizer[(word or "none").upper()])
    near = did_you_mean(word, names) if isinstance(word, str) else ""
    raise InvalidError(f"{word!r} is no optimizer{near}; there are {listed(names)}")


def _names(what: str, given: Any) -> list[str]:
    """Names of buffers, or buffers, one or several."""
    every = [given] if isinstance(given, str) or hasattr(given, "name") else given
    if not isinstance(every, Iterable):
        raise InvalidError(f"{what} must be buffers, or their names, and not {given!r}")
    names = [getattr(one, "name", one) for one in every]
    for name in names:
        if not isinstance(name, str):
            raise InvalidError(f"{name!r} is among {what}, which must be buffers, or their names")
    return names


def options_of(loss: Any, weights: Any, optimizer: Any, schedule: str | None, batch: Any, loss_scale: Any,
               numbers: Mapping[str, Any]) -> c.TrainOptions | None:
    """None where nothing is said: the graph's own key `train` says it."""
    if loss is None and weights is None:
        if numbers or batch is not None or schedule is not None or optimizer is not None or loss_scale is not None:
            raise InvalidError("a loss and weights are wanted beside the other options; without all of them the key \"train\" of the graph says it")
        return None
    if loss is None or weights is None:
        raise InvalidError(f"{'a loss' if loss is None else 'weights'} must be named too, as in differentiate(loss=loss, weights=[w])")
    for name in numbers:
        if name not in NUMBERS:
            raise InvalidError(f"{name!r} is no option{did_you_mean(name, NUMBERS)}; there are {listed(list(NUMBERS))}, loss_scale and schedule")
    of_loss, of_weights, of_batch = _names("the loss", loss), _names("the weights", weights), _names("the batch", [] if batch is None else batch)
    if len(of_loss) != 1:
        raise InvalidError(f"the loss is {len(of_loss)} buffers; it must be one")
    scale = AUTO if loss_scale == "auto" else 1.0 if loss_scale is None else _number("loss_scale", loss_scale)
    return c.TrainOptions(loss=encoded(of_loss[0]), weights=strings(of_weights), weight_count=len(of_weights),
                          optimizer=_optimizer("sgd" if optimizer is None else optimizer), schedule=encoded(schedule),
                          batch=strings(of_batch), batch_count=len(of_batch), loss_scale=scale,
                          **{name: _number(name, numbers.get(name, usual)) for name, usual in NUMBERS.items()})


def strategy_of(given: str | Mapping[str, int]) -> c.Strategy:
    """From "dp=2,micro=4", or a table of the same numbers."""
    text = given if isinstance(given, str) else ",".join(f"{name}={value}" for name, value in given.items())
    strategy = c.Strategy()
    must(lib.gantry_strategy_parse, byref(strategy), encoded(text))
    return strategy
