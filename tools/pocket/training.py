"""What the trainings share: a schedule by wall time, moving averages, and a watch for losses that are no numbers."""

from __future__ import annotations

import math
import time

import torch

from common import say

BETAS = (0.9, 0.99)


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

    # The average reaches back over this share of all steps.
    REACH = 0.05

    def __init__(self, parameters: list[torch.Tensor]):
        self.parameters = parameters
        self.values = [p.detach().clone() for p in parameters]
        self.updates = 0
        # The newest weights' share: on the device, so that a recorded step reads today's value and not the recording's.
        self.share = torch.ones((), device=parameters[0].device)

    def prepare(self, total: float) -> None:
        """Sets the share of the coming update; `total` is how many steps there will be in all."""
        self.updates += 1
        self.share.fill_(max(1.0 / max(1.0, self.REACH * total), 9.0 / (10.0 + self.updates)))

    @torch.no_grad()
    def update(self) -> None:
        """Moves the average towards the parameters."""
        apart = torch._foreach_sub(self.parameters, self.values)
        torch._foreach_mul_(apart, self.share)
        torch._foreach_add_(self.values, apart)

    @torch.no_grad()
    def copy_to_parameters(self) -> None:
        torch._foreach_copy_(self.parameters, self.values)


def optimizer(groups: list[dict], rate: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW; on a GPU fused, with a learning rate that lives there, so that its step can be recorded."""
    if device.type != "cuda":
        return torch.optim.AdamW(groups, lr=rate, betas=BETAS)
    return torch.optim.AdamW(groups, lr=torch.tensor(rate, device=device), betas=BETAS, fused=True, capturable=True)


def groups_of(parameters: list[torch.Tensor]) -> list[dict]:
    """Parameter groups with weight decay on matrices and kernels only."""
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


class Loop:
    """The plain part of a training loop: `update` after each step's gradients, or its three parts one by one.

    Only `apply` works on the device's data, always the same way, so it can be part of a recorded graph (`graphs.py`). Looks at
    the loss only every `every` seconds, since each look waits for the GPU. If it is no number then, weights and moments go back
    to those of the last look, with half the learning rate.
    """

    def __init__(self, name: str, module: torch.nn.Module, schedule: Schedule, device: torch.device, every: float = 10.0):
        self.name = name
        self.schedule = schedule
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = optimizer(groups_of(self.parameters), schedule.peak, device)
        self.average = Average(self.parameters)
        self.every = every
        self.steps = self.samples = 0
        self.rate = 0.0
        self.sum = torch.zeros((), device=device)
        self.summed = 0
        self.looked = time.monotonic()
        self.looked_samples = 0
        self.kept: list[torch.Tensor] | None = None
        self.history: list[dict] = []

    def update(self, loss: torch.Tensor, samples: int) -> None:
        """Clips, steps, averages, and clears the gradients."""
        self.prepare()
        self.apply(loss)
        self.clear()
        self.counted(samples)

    def prepare(self) -> None:
        """Sets the numbers that change from step to step."""
        self.rate = self.schedule.rate()
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(self.rate)
            else:
                group["lr"] = self.rate
        self.average.prepare((self.steps + 1) / max(1e-3, min(1.0, self.schedule.progress())))

    def apply(self, loss: torch.Tensor) -> None:
        """The work on the device after the gradients; never waits for it."""
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)
        self.optimizer.step()
        self.average.update()
        self.sum += loss

    def clear(self) -> None:
        """Forgets the gradients."""
        for p in self.parameters:
            p.grad = None

    def counted(self, samples: int) -> None:
        """Counts a step that was made; looks now and then."""
        self.summed += 1
        self.steps += 1
        self.samples += samples
        if time.monotonic() - self.looked > self.every:
            self.look()

    def look(self) -> None:
        """Prints where training is; keeps a copy of everything, or goes back to the last one."""
        if not self.summed:
            return
        loss = float(self.sum) / self.summed
        now = time.monotonic()
        speed = (self.samples - self.looked_samples) / max(1e-6, now - self.looked)
        say(f"{self.name}: step {self.steps}, loss {loss:.5f}, {speed:.0f} samples/s, rate {self.rate:.2e}")
        self.history.append({"step": self.steps, "loss": loss, "samples_per_s": round(speed), "rate": self.rate})
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
