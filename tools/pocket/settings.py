"""Sizes, counts and seconds of a training run: the full one, and a tiny one that only proves that everything runs.

Every file of the training reads its numbers here, so that a run is described in one place. Lengths of training are wall
time, not steps: a stage has to end within the time that its machine is lent for.
"""

from __future__ import annotations

from dataclasses import dataclass

# Everything that is drawn from chance starts from this number.
SEED = 20_261_201

# Portraits are numbered within streams; no two streams share one, so what is measured was never trained on.
STREAMS = {
    "tokenizer": 0,
    "vae": 1,
    "vae-test": 2,
    "classifier": 3,
    "classifier-test": 4,
    "evaluation": 5,
    "sheet": 6,
    "unet": 100,  # plus the stage's number, so that each stage sees new portraits
}

Size = tuple[int, int]
"""Width and height in pixels, in this order, as a person writes them."""


@dataclass(frozen=True)
class Settings:
    """One run's numbers. Seconds are of training alone, without rendering, compiling and measuring."""

    # Which sizes are rendered, as a repeating pattern, so that a run cut short still has each size's share.
    pattern: tuple[Size, ...] = ((256, 256), (256, 256), (256, 384), (256, 256), (384, 256))
    # Portraits in one call of the renderer.
    render_batch: int = 64
    # Most seconds that one set may take to render; what is there by then is used.
    render_seconds: float = 200.0

    vae_pictures: int = 24_000
    vae_batch: int = 32
    vae_seconds: float = 270.0
    # A second helping, on new portraits, before the UNet.
    vae_more_seconds: float = 110.0
    vae_lr: float = 1e-3

    unet_pictures: int = 26_000
    unet_batch: int = 256
    # As long as the deadline allows.
    unet_seconds: float = 1200.0
    # 4,000 to 20,000 steps, by how fast they are: a rate that so short a training can bear and needs, then a cosine.
    unet_lr: float = 8e-4
    # Averaged weights are saved so often, should the machine be lost.
    keep_seconds: float = 240.0
    # Captions prepared for each picture; each use draws one of them.
    captions: int = 8

    classifier_pictures: int = 7_000
    classifier_batch: int = 256
    classifier_seconds: float = 40.0

    # Held-out pictures per size for figures on the VAE and the classifier.
    test_pictures: int = 500
    # Captions that the vocabulary is learnt from.
    tokenizer_captions: int = 12_000
    eval_prompts: int = 200
    eval_seeds: int = 2
    eval_vague: int = 240
    eval_steps: int = 20

    @property
    def sizes(self) -> list[Size]:
        """The sizes of the pattern, each once; the first is the native one."""
        return list(dict.fromkeys(self.pattern))


FULL = Settings()

TINY = Settings(
    pattern=((64, 64), (64, 64), (64, 128), (64, 64), (128, 64)),
    render_batch=4,
    vae_pictures=40,
    vae_batch=4,
    vae_seconds=8.0,
    vae_more_seconds=5.0,
    unet_pictures=40,
    unet_batch=4,
    unet_seconds=8.0,
    captions=3,
    classifier_pictures=40,
    classifier_batch=8,
    classifier_seconds=5.0,
    test_pictures=4,
    tokenizer_captions=3_000,
    eval_prompts=6,
    eval_seeds=1,
    eval_vague=6,
    eval_steps=3,
)
