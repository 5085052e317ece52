"""Tests of the training's parts that need neither a GPU nor a trained model; a minute on two cores.

    python -m unittest discover tools/pocket/tests
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attributes
import captions
import classifier
import common
import draw
import evaluate
import model
import sampler
import train_unet
import train_vae
from settings import TINY
from tokenizer import Tokenizer, learn, words
from compiling import Step
from graphs import Stepper
from training import Loop, Schedule

TEXTS = list(draw.corpus(0, 2000))
TOKENIZER = Tokenizer(learn(TEXTS))


class Vocabulary(unittest.TestCase):
    def test_known_words_are_one_token_each(self):
        for word in {word for text in TEXTS for word in words(text)}:
            self.assertEqual(len(TOKENIZER._word(word)), 1, word)

    def test_the_words_offered_in_the_window_are_known(self):
        offered = captions.known_words()
        for group in offered["categories"]:
            for phrase in group["words"] + group.get("colors", []):
                for word in words(phrase):
                    self.assertEqual(len(TOKENIZER._word(word)), 1, phrase)

    def test_ids_equal_those_of_transformers(self):
        from transformers import CLIPTokenizer

        with tempfile.TemporaryDirectory() as folder:
            TOKENIZER.save_folder(Path(folder))
            theirs = CLIPTokenizer.from_pretrained(folder)
        texts = [*TEXTS[:50], "", "aaaa aaa aaaaaa", "don't  YOU'VE 85mm!! ½ café cafe\u0301 中文 🙂 \u00ad", "x" * 300]
        for text in texts:
            ids = theirs(text, padding="max_length", max_length=77, truncation=True)["input_ids"]
            self.assertEqual(TOKENIZER.padded(text), ids, text)

    def test_it_is_small_and_ends_with_the_special_tokens(self):
        self.assertLessEqual(len(TOKENIZER), 1500)
        self.assertEqual((TOKENIZER.start, TOKENIZER.end), (len(TOKENIZER) - 2, len(TOKENIZER) - 1))

    def test_it_is_read_back_as_written(self):
        with tempfile.TemporaryDirectory() as folder:
            TOKENIZER.save(Path(folder) / "t.json")
            self.assertEqual(Tokenizer.load(Path(folder) / "t.json").vocab, TOKENIZER.vocab)


class Drawing(unittest.TestCase):
    def test_a_portrait_depends_on_its_number_alone(self):
        whole, _ = draw.job(100, 0, 6, 0, None)
        part, _ = draw.job(100, 4, 2, 0, None)
        self.assertEqual(whole[4:], part)
        self.assertNotEqual(whole[0], draw.portrait(101, 0))

    def test_captions_fit_the_text_encoder(self):
        cut = sum(len(TOKENIZER.ids(text)) > 75 for text in TEXTS)
        self.assertLess(cut / len(TEXTS), 0.01)


class Networks(unittest.TestCase):
    def test_the_text_encoder_is_clips(self):
        from transformers import CLIPTextConfig, CLIPTextModel

        ours = model.build_text_encoder(3, 600)
        theirs = CLIPTextModel(CLIPTextConfig(vocab_size=600, bos_token_id=598, eos_token_id=599, **model.TEXT)).eval()
        state = ours.state_dict()
        prefixed = next(iter(theirs.state_dict())).startswith("text_model.")
        theirs.load_state_dict(state if prefixed else {k.removeprefix("text_model."): v for k, v in state.items()}, strict=False)
        ids = torch.randint(600, (2, 77))
        with torch.no_grad():
            torch.testing.assert_close(ours(ids), theirs(ids).last_hidden_state, rtol=1e-4, atol=1e-5)

    def test_starting_weights_come_from_the_seed(self):
        one, other, third = model.build_vae(1), model.build_vae(1), model.build_vae(2)
        torch.testing.assert_close(one.encoder.conv_in.weight, other.encoder.conv_in.weight, rtol=0, atol=0)
        self.assertFalse(torch.equal(one.encoder.conv_in.weight, third.encoder.conv_in.weight))

    def test_f16_fits_the_limit(self):
        total = model.count(model.build_vae(0)) + model.count(model.Generator(0, 1500))
        self.assertLess(2 * total, 19_900_000)

    def test_whitening_changes_latents_and_not_pictures(self):
        vae = model.build_vae(0).eval()
        pictures = torch.randint(256, (6, 32, 48, 3), dtype=torch.uint8)
        with torch.no_grad():
            before = vae.decode(train_vae.encode(vae, pictures)).sample
            figures = train_vae.whiten(vae, {(48, 32): pictures})
            after = vae.decode(train_vae.encode(vae, pictures)).sample
        torch.testing.assert_close(before, after, rtol=1e-3, atol=1e-3)
        self.assertLess(figures["largest_mean_after"], 1e-2)
        self.assertLess(figures["largest_error_of_covariance_after"], 2e-2)

    def test_whitened_latents_are_turned_to_the_preview(self):
        vae = model.build_vae(0).eval()
        pictures = torch.randint(256, (4, 4, 6, 3)).repeat_interleave(8, 1).repeat_interleave(8, 2).to(torch.uint8)
        train_vae.whiten(vae, {(48, 32): pictures})
        latents = train_vae.encode(vae, pictures)
        true = torch.nn.functional.avg_pool2d(train_vae.to_signed(pictures), 8)
        to_rgb = torch.tensor(train_vae.TO_RGB)

        def fit(z):
            return float((torch.einsum("nchw,ck->nkhw", z, to_rgb) * (true - true.mean((0, 2, 3), keepdim=True))).mean())

        best = fit(latents)
        for _ in range(20):
            turn = torch.linalg.qr(torch.randn(4, 4))[0]
            self.assertLessEqual(fit(torch.einsum("dc,nchw->ndhw", turn, latents)), best + 1e-4)


class Noise(unittest.TestCase):
    def test_levels_are_those_of_k_diffusion(self):
        times, sigmas = sampler.noise_levels(20)
        self.assertEqual((times[0], times[-1], sigmas[-1], len(sigmas)), (999.0, 0.0, 0.0, 21))
        self.assertAlmostEqual(times[1], 946.4210526, places=5)
        # Published values of SD1.5's schedule.
        self.assertAlmostEqual(sigmas[0], 14.614641, places=4)
        self.assertAlmostEqual(sigmas[-2], 0.0291672, places=6)
        ten = sampler.noise_levels(10)[1]
        self.assertAlmostEqual(ten[5], 1.344928, places=4)

    def test_a_perfect_model_is_followed_to_its_picture(self):
        target = torch.randn(4, 8, 8)
        signal = model.alphas_cumprod()
        table = ((1 - signal) / signal).sqrt()

        class Perfect(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one = torch.nn.Parameter(torch.ones(()))

            def text_encoder(self, ids):
                return ids.float()[..., None]

            def unet(self, seen, time, encoder_hidden_states, return_dict):
                low = int(time[0].clamp(max=998))
                share = float(time[0]) - low
                sigma = float(((1 - share) * table[low].log() + share * table[low + 1].log()).exp())
                return ((seen * (sigma**2 + 1) ** 0.5 - target) / sigma,)

        made = sampler.latents(Perfect(), TOKENIZER, ["a"], [""], [3], (64, 64), 20, 7.0)
        torch.testing.assert_close(made[0], target, rtol=1e-3, atol=1e-3)

    def test_training_samples_follow_the_schedule(self):
        noiser = train_unet.Noiser(torch.device("cpu"))
        clean, ids = torch.full((400, 4, 4, 4), 2.0), torch.ones(400, 77, dtype=torch.long)
        noisy, times, used, noise, weights = noiser(clean, ids, torch.zeros(77, dtype=torch.long))
        signal = model.alphas_cumprod()[times].float()[:, None, None, None]
        torch.testing.assert_close(noisy, signal.sqrt() * clean + (1 - signal).sqrt() * noise)
        self.assertLess(int(times.min()), 5)
        self.assertGreater(int(times.max()), 994)
        self.assertTrue(10 < int((used[:, 0] == 0).sum()) < 80, "a tenth of the captions is empty")
        self.assertAlmostEqual(float(weights[times.argmax()]), 1.0, places=5)
        self.assertLess(float(weights[times.argmin()]), 0.02)


class State(unittest.TestCase):
    def test_parts_stay_small_and_come_back(self):
        tensors = {f"t{i}": torch.randn(1_500_000) for i in range(7)}
        with tempfile.TemporaryDirectory() as folder:
            files = common.save_parts(tensors, Path(folder), "x", {"steps": "5"})
            self.assertGreater(len(files), 1)
            self.assertTrue(all(file.stat().st_size <= 16 * 2**20 for file in files))
            again, note = common.load_parts(Path(folder), "x")
            self.assertEqual(note["steps"], "5")
            self.assertTrue(all(torch.equal(again[name], tensors[name]) for name in tensors))
            common.save_parts({"t": torch.zeros(1)}, Path(folder), "x")
            self.assertEqual(list(common.load_parts(Path(folder), "x")[0]), ["t"])

    def test_training_goes_on_where_it_ended(self):
        first = model.Generator(1, len(TOKENIZER))
        loop = Loop("test", first, Schedule(1e-3, 100.0), torch.device("cpu"))
        for p in first.parameters():
            p.grad = torch.randn_like(p)
        loop.update(torch.tensor(1.0), 1)
        loop.average.copy_to_parameters()
        with tempfile.TemporaryDirectory() as folder:
            train_unet.save_state(first, loop, Path(folder))
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
            self.assertLess(size, 33 * 2**20)
            second = model.Generator(2, len(TOKENIZER))
            train_unet.load_model(second, Path(folder))
            later = Loop("test", second, Schedule(1e-3, 100.0), torch.device("cpu"))
            train_unet.load_moments(later, second, Path(folder))
        for p, q in zip(first.parameters(), second.parameters()):
            torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-6)
            moments = loop.optimizer.state[p]["exp_avg_sq"], later.optimizer.state[q]["exp_avg_sq"]
            torch.testing.assert_close(*moments, rtol=1e-2, atol=1e-9)
        for q in second.parameters():
            q.grad = torch.randn_like(q)
        later.update(torch.tensor(1.0), 1)

    def test_a_loss_that_is_no_number_is_undone(self):
        net = torch.nn.Linear(2, 1)
        loop = Loop("test", net, Schedule(1e-2, 100.0), torch.device("cpu"), every=1e9)
        for value in (1.0, float("nan")):
            for p in net.parameters():
                p.grad = torch.full_like(p, value)
            loop.update(torch.tensor(value), 1)
            loop.look()
        self.assertTrue(all(bool(torch.isfinite(p).all()) for p in net.parameters()))
        self.assertEqual(loop.schedule.peak, 5e-3)

    def test_the_rate_rises_holds_and_falls_across_stages(self):
        def at(progress, start=0.0, end=1.0):
            schedule = Schedule(1.0, 100.0, start, end)
            schedule.progress = lambda: progress
            return schedule.rate()

        self.assertLess(at(0.001), 0.1)
        self.assertEqual(at(0.2), 1.0)
        self.assertLess(at(1.0), 1e-9)
        self.assertAlmostEqual(at(1.0, 0.0, 0.55), at(0.0, 0.55, 1.0))


class Steps(unittest.TestCase):
    """Recording itself needs a GPU; here a recorder that runs the work plainly stands in for it."""

    class Pretend:
        def __init__(self, broken=False):
            self.broken, self.records = broken, 0

        def record(self, work):
            self.records += 1
            if self.broken:
                raise RuntimeError("not today")

            return work

    def trained(self, recorder):
        torch.manual_seed(4)
        net = torch.nn.Linear(3, 1)
        schedule = Schedule(1e-2, 100.0)
        schedule.progress = lambda: 0.2
        loop = Loop("test", net, schedule, torch.device("cpu"))
        # As a replay does, backward has to write its gradients anew.
        def loss(x):
            return net(x).square().mean()

        def step(size, x):
            loop.clear()
            value = loss(x)
            value.backward()
            return value.detach()

        stepper = Stepper(step, loop, recorder)
        for i in range(12):
            size = (8, 8) if i % 3 else (8, 16)
            stepper(size, [torch.randn(4, 3, generator=torch.Generator().manual_seed(i))])
        return net, loop, stepper

    def test_recorded_steps_do_what_plain_ones_do(self):
        recorder, broken = self.Pretend(), self.Pretend(broken=True)
        (plain, loop, _), (other, loop_other, stepper), (third, _, fallen) = map(self.trained, (None, recorder, broken))
        self.assertEqual((recorder.records, len(stepper.replays)), (2, 2))
        self.assertEqual((broken.records, len(fallen.replays), fallen.recorder), (1, 0, None))
        for a, b, c in zip(plain.parameters(), other.parameters(), third.parameters()):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
            torch.testing.assert_close(a, c, rtol=0, atol=0)
        for a, b in zip(loop.average.values, loop_other.average.values):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        self.assertEqual((loop.steps, loop_other.steps, loop_other.samples), (12, 12, 48))

    def test_batches_have_the_layout_that_was_compiled_for(self):
        cpu = torch.device("cpu")
        empty = torch.zeros(77, dtype=torch.long)
        bucket = train_unet.example((64, 96), 100, cpu)
        latents = bucket.latents.contiguous(memory_format=torch.channels_last)
        made = [
            train_unet.Noiser(cpu).batch(some, 8, empty) for some in (bucket, train_unet.Bucket(latents, bucket.ids))
        ]
        for a, b in zip(*made, strict=True):
            self.assertEqual((a.shape, a.dtype, a.stride()), (b.shape, b.dtype, b.stride()))
            self.assertTrue(b.is_contiguous())
        step = Step(lambda x: x.sum(), [], {(8, 8)})
        with self.assertRaises(ValueError):
            step((8, 8), torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last))

    def test_a_second_process_finds_what_the_first_compiled(self):
        code = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from compiling import Step, cache_use
from train_unet import Bucket, Noiser, example
layer = torch.nn.Conv2d(4, 4, 3)
bucket = example((64, 96), 100, torch.device("cpu"))
if sys.argv[2] == "main":
    bucket = Bucket(bucket.latents.contiguous(memory_format=torch.channels_last), bucket.ids)
batch = Noiser(torch.device("cpu")).batch(bucket, 4, bucket.ids[0, 0].long())
loss = lambda noisy, times, ids, noise, weight: ((layer(noisy) - noise[..., 1:-1, 1:-1]).square().mean((1, 2, 3)) * weight).mean()
Step(loss, list(layer.parameters()), {(64, 96)})((64, 96), *batch)
print(cache_use())
"""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
            here = str(Path(__file__).resolve().parents[1])
            said = [
                subprocess.run([sys.executable, "-c", code, here, role], env=environment, capture_output=True, text=True)
                for role in ("helper", "main")
            ]
        last = [run.stdout.splitlines()[-1] if run.stdout else run.stderr for run in said]
        self.assertEqual(last, ["graphs from the cache 0, made anew 1", "graphs from the cache 1, made anew 0"])


class Measuring(unittest.TestCase):
    def test_corners_name_plain_backgrounds(self):
        n = len(attributes.COLORS)
        generator = torch.Generator().manual_seed(0)
        shades = torch.cartesian_prod(*[torch.tensor([30.0, 128.0, 220.0])] * 3)[:n]
        classes = torch.arange(n).repeat_interleave(40)
        noise = torch.randn(len(classes), 1, 1, 3, generator=generator) * 6
        pictures = (shades[classes][:, None, None] + noise).clamp(0, 255).to(torch.uint8).expand(-1, 32, 32, 3).contiguous()
        pictures[:, 10:] = 128
        corners = classifier.CornerColors.fit(classifier.corner_colors(pictures), classes)
        self.assertTrue(bool((corners(pictures) == classes).all()))

    def test_expectations_leave_out_what_a_caption_does_not_say(self):
        seen_light = seen_bald = False
        for i in range(300):
            portrait = draw.portrait(5, i)
            prompt = captions.full_caption(portrait, draw.generator(5, i, purpose=1))
            expect = evaluate.expectation(portrait, prompt)
            if portrait.named("hair_length") == "bald":
                seen_bald = True
                self.assertNotIn("hair_color", expect)
            if "light" not in expect:
                seen_light = True
                self.assertFalse(any(side in prompt for side in ("from the left", "from the right", "side light")))
            if portrait.named("glasses") == "none":
                self.assertEqual(expect["glasses"], 0)
        self.assertTrue(seen_light and seen_bald)

    def test_figures_count_what_is_right(self):
        def case(id_, kind, **more):
            return evaluate.Case(id_, kind, "", 0, 7.0, (64, 64), 20, **more)

        blank = {name: 0 for name in classifier.COLUMNS} | {"background_measured": 0}
        cases = [
            case("a", "main", expect={"background": 1, "hair_color": 2, "glasses": 1}),
            case("b", "main", expect={"background": 3, "hair_color": 2, "glasses": 0}),
            case("c", "cfg1", expect={"background": 1, "hair_color": 2}),
            case("n", "negative", expect={"glasses": 1}, thing="glasses"),
            case("m", "negative", expect={"background": 4}, thing="background"),
        ]
        found = {
            "a": blank | {"background": 1, "hair_color": 2, "glasses": 2, "background_measured": 1},
            "b": blank | {"background": 5, "hair_color": 2, "glasses": 0},
            "c": blank | {"background": 1, "hair_color": 0},
            "n": blank | {"glasses": 2},
            "m": blank | {"background": 5},
        }
        result = evaluate.figures(cases, found)
        expected = {
            "background colour": [1, 2],
            "background colour, measured at the corners": [1, 2],
            "hair colour": [2, 2],
            "glasses present when asked": [1, 1],
            "glasses absent when not asked": [1, 1],
            "CFG 7: both": [1, 2],
            "CFG 1: both": [0, 1],
            "negative prompt removes": [1, 2],
            "negative prompt removes: glasses": [0, 1],
            "named: glasses": [1, 2],
        }
        self.assertEqual({name: result[name] for name in expected}, expected)
        self.assertIn("| hair colour | 2 | 2 | 100.0 | ≥ 90 |", evaluate.table(result))

    def test_negative_prompts_name_what_is_shown(self):
        vague = evaluate.vague_cases(TINY, 2)
        rows = [dict.fromkeys(classifier.COLUMNS, 0) for _ in vague]
        rows[0] |= {"glasses": 2, "hat": 1, "background": 5, "hair_length": 1, "hair_color": 3}
        rows[1] |= {"tone": 1, "beard": 2}
        cases = evaluate.negative_cases(vague, torch.tensor([[row[name] for name in classifier.COLUMNS] for row in rows]))
        words_ = [(case.of, case.negative) for case in cases]
        first, second = (case.id for case in vague)
        self.assertEqual(words_, [(first, "sunglasses"), (first, "hat"), (first, "blue background"), (first, "red hair"),
                                  (second, "moustache")])  # fmt: skip
        self.assertTrue(all(case.seed == vague[0].seed for case in cases[:4]))


if __name__ == "__main__":
    unittest.main()
