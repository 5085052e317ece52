"""What the trainings share: a schedule by wall time, moving averages, and a watch for losses that are no numbers."""

from __future__ import annotations

import math
import time

import torch

from common import say


class Schedule:
    """The learning rate by wall time: warm-up, constant, then a cosine to zero.

    A stage covers `start..end` of the whole training (0..1) in `seconds`; the next one goes on where it ended.
    """

    WARM = 0.02
    HOLD = 0.35

    def __init__(self, peak: float, seconds: float, start: float = 0.0, end: float = 1.0):
        self.peak, self.seconds, self.start, self.end = peak, seconds, start, end
        self.began = time.monotonic()

    def progress(self) -> float:
        """How much of this stage's time is over; 1 or more ends it."""
        return (time.monotonic() - self.began) / self.seconds

    def rate(self) -> float:
        """The learning rate now."""
        at = self.start + (self.end - self.start) * min(1.0, self.progress())
        if at < self.WARM:
            return self.peak * (0.02 + at / self.WARM * 0.98)
        if at < self.HOLD:
            return self.peak
        return self.peak * 0.5 * (1.0 + math.cos(math.pi * (at - self.HOLD) / (1.0 - self.HOLD)))


class Average:
    """Exponential moving average of parameters, on their device. Short at first, so that the start is forgotten."""

    def __init__(self, parameters: list[torch.Tensor], decay: float = 0.999):
        self.parameters = parameters
        self.decay = decay
        self.values = [p.detach().clone() for p in parameters]
        self.updates = 0

    @torch.no_grad()
    def update(self) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.values, self.parameters, 1.0 - decay)

    @torch.no_grad()
    def copy_to_parameters(self) -> None:
        torch._foreach_copy_(self.parameters, self.values)


def optimizer(module: torch.nn.Module, rate: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices and kernels only; fused on a GPU."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), fused=device.type == "cuda")


class Loop:
    """The plain part of a training loop: one call of `update` after each step's gradients.

    Looks at the loss only every `every` seconds, since each look waits for the GPU. If it is no number then, weights and
    moments go back to those of the last look, with half the learning rate.
    """

    def __init__(self, name: str, module: torch.nn.Module, schedule: Schedule, device: torch.device, every: float = 10.0):
        self.name = name
        self.module = module
        self.schedule = schedule
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = optimizer(module, schedule.peak, device)
        self.average = Average(self.parameters)
        self.every = every
        self.steps = self.samples = 0
        self.sum = torch.zeros((), device=device)
        self.summed = 0
        self.looked = time.monotonic()
        self.looked_samples = 0
        self.kept: list[torch.Tensor] | None = None
        self.history: list[dict] = []

    def update(self, loss: torch.Tensor, samples: int) -> None:
        """Clips, steps, averages, and clears the gradients."""
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)
        rate = self.schedule.rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update()
        self.sum += loss
        self.summed += 1
        self.steps += 1
        self.samples += samples
        if time.monotonic() - self.looked > self.every:
            self.look()

    def _step(self) -> None:
        if self.steps:
            self.optimizer.step()
            return
        try:
            self.optimizer.step()
        except RuntimeError as error:
            # The fused kernel is particular about memory layouts; the plain one computes the same.
            say(f"{self.name}: fused AdamW refused ({error}), going on without")
            state = self.optimizer.state
            self.optimizer = optimizer(self.module, self.schedule.rate(), torch.device("cpu"))
            self.optimizer.state.update(state)
            self.optimizer.step()

    def look(self) -> None:
        """Prints where training is; keeps a copy of everything, or goes back to the last one."""
        if not self.summed:
            return
        loss = float(self.sum) / self.summed
        now = time.monotonic()
        speed = (self.samples - self.looked_samples) / max(1e-6, now - self.looked)
        rate = self.optimizer.param_groups[0]["lr"]
        say(f"{self.name}: step {self.steps}, loss {loss:.5f}, {speed:.0f} samples/s, rate {rate:.2e}")
        self.history.append({"step": self.steps, "loss": loss, "samples_per_s": round(speed), "rate": rate})
        state = self._state()
        if math.isfinite(loss):
            self.kept = [t.clone() for t in state]
        elif self.kept is None or len(self.kept) != len(state):
            raise FloatingPointError(f"{self.name}: the loss is {loss} from the start")
        else:
            say(f"{self.name}: back to the last look, half the rate")
            with torch.no_grad():
                torch._foreach_copy_(state, self.kept)
            self.schedule.peak *= 0.5
        self.sum.zero_()
        self.summed = 0
        self.looked, self.looked_samples = time.monotonic(), self.samples

    def _state(self) -> list[torch.Tensor]:
        moments = [m for p in self.parameters if p in self.optimizer.state
                   for m in (self.optimizer.state[p]["exp_avg"], self.optimizer.state[p]["exp_avg_sq"])]  # fmt: skip
        return [p.detach() for p in self.parameters] + self.average.values + moments
