"""Judges pictures: a small CNN with one head for each attribute, trained on renders that the model never saw.

Half of what it sees are the VAE's reconstructions, some of them from noisy latents, and everything may be blurred or noisy, so
that pictures the model makes lie within what it knows. It says how well it does on held-out renders, plain and reconstructed;
figures on the model can be no better than that. Where a colour is plain to read, at the two upper corners, it is also measured
without a network.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import attributes
from common import Clock, load_parts, save_parts, say
from data import Source, stream_of, to_signed
from settings import SEED, Settings, Size
from train_vae import decode, encode
from training import Loop, Schedule

COLUMNS = list(attributes.LABELS)


class Classifier(nn.Module):
    """Pictures f32 `[n, 3, h, w]` in −1..1 to logits by attribute. Works at half their size, from 64×64 up."""

    def __init__(self):
        super().__init__()
        layers: list[nn.Module] = [nn.AvgPool2d(2)]
        before = 3
        for width, stride in ((32, 1), (48, 2), (64, 2), (96, 2), (128, 1), (128, 2)):
            layers += [nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        self.features = nn.Sequential(*layers)
        # A coarse grid, not one mean: sides and places matter.
        self.mix = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(before * 16, 256), nn.ReLU())
        self.heads = nn.ModuleDict({name.replace("-", "_"): nn.Linear(256, len(c)) for name, c in attributes.LABELS.items()})

    def forward(self, pictures: torch.Tensor) -> dict[str, torch.Tensor]:
        mixed = self.mix(self.features(pictures))
        return {name: self.heads[name.replace("-", "_")](mixed) for name in COLUMNS}


def label_table(portraits: list) -> torch.Tensor:
    """Class indices int64 `[n, attributes]`; −1 where a picture cannot show the attribute."""
    rows = [attributes.labels(one) for one in portraits]
    return torch.tensor([[row[name] for name in COLUMNS] for row in rows])


def corner_colors(pictures: torch.Tensor) -> torch.Tensor:
    """The median colours of the two upper corners, f32 `[n, 6]` in 0..1: background in nearly every portrait."""
    side = max(2, min(pictures.shape[1:3]) // 10)
    corners = pictures[:, :side, :side], pictures[:, :side, -side:]
    return torch.cat([c.float().flatten(1, 2).median(dim=1).values for c in corners], 1) / 255.0


class CornerColors:
    """Names the background from the corners' colours alone: the class whose mean and covariance over renders fit best."""

    def __init__(self, means: torch.Tensor, precisions: torch.Tensor, logdets: torch.Tensor):
        self.means, self.precisions, self.logdets = means, precisions, logdets

    @classmethod
    def fit(cls, colors: torch.Tensor, classes: torch.Tensor) -> CornerColors:
        """From `corner_colors` of renders and their classes (−1 is left out)."""
        colors, classes = colors.double().cpu(), classes.cpu()
        n = len(attributes.LABELS["background"])
        whole = colors[classes >= 0]
        means, covariances = [], []
        for one in range(n):
            some = colors[classes == one]
            some = some if len(some) > 20 else whole
            means.append(some.mean(0))
            covariances.append(some.T.cov() + 1e-4 * torch.eye(6, dtype=torch.float64))
        stacked = torch.stack(covariances)
        return cls(torch.stack(means), torch.linalg.inv(stacked), torch.logdet(stacked))

    def __call__(self, pictures: torch.Tensor) -> torch.Tensor:
        off = corner_colors(pictures).double().cpu()[:, None] - self.means
        far = torch.einsum("nci,cij,ncj->nc", off, self.precisions, off)
        return (far + self.logdets).argmin(1)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"corner.means": self.means, "corner.precisions": self.precisions, "corner.logdets": self.logdets}


def augmented(pictures: torch.Tensor) -> torch.Tensor:
    """uint8 `[n, h, w, 3]` to the network's input, some blurred, all with a little noise."""
    x = to_signed(pictures)
    n, device = len(x), x.device
    blurred = F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1)
    how_much = torch.rand(n, 1, 1, 1, device=device) * (torch.rand(n, 1, 1, 1, device=device) < 0.4)
    x = x + how_much * (blurred - x)
    return x + torch.randn_like(x) * 0.04 * torch.rand(n, 1, 1, 1, device=device)


def make_loss(model: Classifier):
    def loss(pictures: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        with torch.autocast(pictures.device.type, torch.bfloat16, enabled=pictures.is_cuda):
            logits = model(pictures)
        total = 0.0
        for column, name in enumerate(COLUMNS):
            known = classes[:, column]
            summed = F.cross_entropy(logits[name].float(), known, ignore_index=-1, reduction="sum")
            total = total + summed / (known >= 0).sum().clamp(min=1)
        return total / len(COLUMNS)

    return loss


@torch.no_grad()
def predict(model: Classifier, pictures: torch.Tensor) -> torch.Tensor:
    """Class indices int64 `[n, attributes]` of uint8 pictures, on the CPU."""
    out = []
    for part in pictures.split(128):
        logits = model(to_signed(part))
        out.append(torch.stack([logits[name].argmax(1) for name in COLUMNS], 1).cpu())
    return torch.cat(out)


def _reconstructed(vae, pictures: torch.Tensor) -> torch.Tensor:
    """Through the VAE and back, with noise up to a sixth of the latents' deviation."""
    out = []
    for part in pictures.split(64):
        z = encode(vae, part)
        amount = 0.16 * torch.rand(len(z), 1, 1, 1, device=z.device)
        out.append(decode(vae, z + amount * torch.randn_like(z)))
    return torch.cat(out)


def train(settings: Settings, device: torch.device, clock: Clock, source: Source, vae, out: Path, reserve: float) -> dict:
    """Renders, trains, measures, and writes `classifier-1.safetensors`. Returns the report."""
    data: dict[Size, tuple] = {}
    for size, (portraits, plain) in source.by_size(stream_of("classifier"), settings.classifier_pictures).items():
        data[size] = plain, _reconstructed(vae, plain), label_table(portraits).to(device)
    torch.manual_seed(SEED + 2)
    model = Classifier().to(device, memory_format=torch.channels_last).train()
    loss = make_loss(model)
    seconds = clock.budget(settings.classifier_seconds, reserve)
    loop = Loop("classifier", model, Schedule(2e-3, seconds), device)
    rng = np.random.default_rng([SEED, 9])
    sizes = list(data)
    shares = np.array([len(data[size][2]) for size in sizes], float)
    while loop.schedule.progress() < 1.0:
        plain, again, classes = data[sizes[rng.choice(len(sizes), p=shares / shares.sum())]]
        n = min(settings.classifier_batch, len(plain))
        rows = torch.randint(len(plain), (n,), device=device)
        made = torch.rand(n, 1, 1, 1, device=device) < 0.5
        value = loss(augmented(torch.where(made, again[rows], plain[rows])), classes[rows])
        value.backward()
        loop.update(value.detach(), n)
    loop.look()
    # Not the moving average: batch norm's own averages belong to the weights as they are.
    model.eval().requires_grad_(False)
    native = data[settings.sizes[0]]
    background = COLUMNS.index("background")
    corners = CornerColors.fit(corner_colors(native[0]), native[2][:, background])
    save_parts({**model.state_dict(), **corners.tensors()}, out, "classifier")

    report = {"pictures": int(shares.sum()), "steps": loop.steps, "seconds": round(seconds), "held_out": {}}
    for size in settings.sizes:
        portraits, pictures = source.held_out(stream_of("classifier-test"), size, settings.test_pictures)
        truth = label_table(portraits)
        name = f"{size[0]}x{size[1]}"
        for kind, shown in (("plain", pictures), ("reconstructed", decode(vae, encode(vae, pictures)))):
            figures = accuracies(predict(model, shown), truth)
            known = truth[:, background] >= 0
            if size == settings.sizes[0]:
                right = corners(shown)[known] == truth[known, background]
                figures["background, measured at the corners"] = [int(right.sum()), int(known.sum())]
            report["held_out"][f"{name} {kind}"] = figures
            low = sorted((round(100 * r / max(1, n), 1), key) for key, (r, n) in figures.items())
            say(f"classifier, {name} {kind}: " + ", ".join(f"{key} {value}" for value, key in low))
    return report


def accuracies(found: torch.Tensor, truth: torch.Tensor) -> dict[str, list[int]]:
    """By attribute, how many were right and of how many that can be seen."""
    figures = {}
    for column, name in enumerate(COLUMNS):
        known = truth[:, column] >= 0
        right = (found[known, column] == truth[known, column]).sum()
        figures[name] = [int(right), int(known.sum())]
    return figures


def load(folder: Path, device: torch.device) -> tuple[Classifier, CornerColors]:
    """The trained classifier and the corner measure."""
    tensors, _ = load_parts(folder, "classifier")
    corner = [tensors.pop(f"corner.{part}") for part in ("means", "precisions", "logdets")]
    model = Classifier()
    model.load_state_dict(tensors)
    return model.to(device).eval().requires_grad_(False), CornerColors(*corner)
