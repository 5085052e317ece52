//! What went wrong, as a sentence, and the words on the buttons that help.
//!
//! Names of files are shown without their folders; the whole path is in the details.

use super::figures::size;
use super::reasons::{flaw, reason};
use super::window::device_choice;
use super::{Lang, Phrase, phrases};
use crate::base::problem::Phase;
use crate::base::request::RequestError;
use crate::base::{Hint, Problem};
use std::path::Path;

phrases! {
    FILE_UNREADABLE: "{file} is not there, or cannot be read.", "找不到或无法读取 {file}。";
    FILE_DAMAGED: "{file} is damaged or is no safetensors file: {what}.", "{file} 已损坏，或不是 safetensors 文件：{what}。";
    FILE_INCOMPLETE: "{file} is an unfinished download: {have} of {need} are there.", "{file} 没有下载完整：{need} 中只有 {have}。";
    FILE_CHANGED: "{file} was changed while it was in use.", "{file} 在使用过程中被更改。";
    WRONG_KIND: "{file} is {article} {kind}. {advice}", "{file} 是{article}{kind}。{advice}";
    NOT_VAE: "{file} is {article} {kind}, not a VAE. {advice}", "{file} 是{article}{kind}，不是 VAE。{advice}";
    ADVICE_KIND: "Softbox makes pictures with Stable Diffusion 1.5.", "Softbox 使用 Stable Diffusion 1.5。";
    ADVICE_VAE: "Choose a VAE of Stable Diffusion 1.5.", "请选择 Stable Diffusion 1.5 的 VAE。";
    ADVICE_LFS: "Fetch the file itself with “git lfs pull”, or download it in a browser.", "请用“git lfs pull”获取真正的文件，或重新下载。";
    ADVICE_PAGE: "A page was saved in place of the file: download it again, logged in where that is needed.", "保存下来的是网页而不是模型文件：请重新下载，必要时先登录。";
    ADVICE_PICKLE: "Softbox reads safetensors only: look for that variant of it.", "Softbox 只读取 safetensors 格式：请下载该格式的版本。";
    ADVICE_UNPACK: "Unpack it first.", "请先解压。";
    NO_VAE: "{file} has no VAE. Choose one to decode its pictures.", "{file} 不含 VAE。请选择一个用于解码图片。";
    BAD_CHECKPOINT: "{file} does not fit together: {what}.", "{file} 内容不完整或不匹配：{what}。";
    WEIGHTS_NOT_FINITE: "The picture broke at step {step}, in full precision: {file} is probably damaged. Download it again, or try another checkpoint.", "已使用全精度，但第 {step} 步仍出现无效数值：{file} 可能已损坏。请重新下载，或换一个模型。";
    NO_MODEL: "No checkpoint is chosen. Open one first.", "尚未选择模型。请先打开一个。";
    DEVICE_UNAVAILABLE: "{device} cannot be used: {why}.", "无法使用 {device}：{why}。";
    DEVICE_LOST: "{device} stopped answering. The next job opens it again.", "{device} 停止响应。下个任务会重新打开它。";
    DEVICE_FAULT: "{device} failed during this job. What it held is freed, and the next job can run.", "{device} 在本次任务中出错。占用的显存已释放，可以继续下一个任务。";
    DOES_NOT_FIT: "This does not fit: it needs {need}, and only {have} are free below the limit of {limit}.", "放不下：需要 {need}，而 {limit} 上限内只剩 {have}。";
    DOES_NOT_FIT_BUT: "This does not fit: it needs {need}, and only {have} are free below the limit of {limit}. {size} would fit.", "放不下：需要 {need}，而 {limit} 上限内只剩 {have}。{size} 可以放下。";
    OUT_OF_MEMORY_LOADING: "Not enough memory to load the checkpoint.", "显存不足，无法加载模型。";
    OUT_OF_MEMORY_ENCODING: "Not enough memory to encode the prompt.", "显存不足，无法编码提示词。";
    OUT_OF_MEMORY_STEP: "Not enough memory for step {step} at this size.", "显存不足，无法以此尺寸计算第 {step} 步。";
    OUT_OF_MEMORY_DECODING: "Not enough memory to decode at this size. The latent is kept.", "显存不足，无法以此尺寸解码。潜变量已保留。";
    OUT_OF_MEMORY_SAVING: "Not enough memory to save the picture.", "内存不足，无法保存图片。";
    LATENT_NOT_FINITE: "The picture broke at step {step}: it holds values that are no numbers. Full precision (f32) often helps.", "第 {step} 步出现无效数值，图片损坏。改用 f32 精度通常可以解决。";
    PICTURE_NOT_FINITE: "The picture could not be decoded to valid colours, in full precision either. The VAE is probably damaged: try another.", "即使用全精度，图片解码后仍出现无效颜色。VAE 可能已损坏，请换一个。";
    PROBLEM_NOT_SAVED: "The picture could not be saved to {folder}. It stays on screen until you save it elsewhere.", "图片无法保存到 {folder}。它会留在屏幕上，请另存到其他位置。";
    INTERNAL: "Something went wrong inside Softbox: {what}", "Softbox 内部出错：{what}";
    ENGINE_GONE: "The part of Softbox that makes pictures has stopped. Save what you want to keep, then start Softbox again.", "Softbox 的生成部分已停止。请先保存需要的图片，然后重新启动 Softbox。";

    // Fields of a request.
    BAD_SIZE: "Size {width}×{height} does not work: both sides are multiples of 8 from 64 to 8192.", "尺寸 {width}×{height} 不可用：宽高须为 64 到 8192 之间 8 的倍数。";
    BAD_SIZE_TEXT: "“{text}” is no size. Write it like 512x768.", "“{text}”不是尺寸。请写成 512x768。";
    BAD_STEPS: "{steps} steps do not work: 1 to 1000 are possible.", "步数 {steps} 不可用：可填 1 到 1000。";
    BAD_CFG: "CFG {cfg} does not work: 1 to 30 is possible.", "CFG {cfg} 不可用：可填 1 到 30。";
    BAD_CLIP_SKIP: "Clip skip {skip} does not work: 1 to 12 is possible.", "Clip skip {skip} 不可用：可填 1 到 12。";
    BAD_LAYERS: "Clip skip {skip} does not work here: this checkpoint's text encoder has {layers} layers.", "Clip skip {skip} 不可用：此模型的文本编码器只有 {layers} 层。";
    BAD_FACTOR: "{size} does not work here: this VAE needs multiples of {factor}.", "{size} 不可用：此 VAE 要求宽高为 {factor} 的倍数。";
    BAD_COUNT: "{count} pictures do not work: 1 to 1000 are possible.", "数量 {count} 不可用：可填 1 到 1000。";
    BAD_PAIR_STEPS: "{sampler} with the {schedule} schedule makes {least} to {most} steps, not {steps}.", "{sampler} 搭配 {schedule} 调度时步数可为 {least} 到 {most}，不能是 {steps}。";
    BAD_PAIR: "{sampler} does not work with the {schedule} schedule.", "{sampler} 不能与 {schedule} 调度搭配。";

    // Kinds of files. English takes an article before them.
    KIND_CHECKPOINT: "{name} checkpoint", "{name} 模型";
    KIND_REFINER: "SDXL refiner", "SDXL 精修模型";
    KIND_INPAINTING: "inpainting checkpoint", "局部重绘模型";
    KIND_EDIT: "image-editing checkpoint", "图像编辑模型";
    KIND_LORA: "LoRA", "LoRA 文件";
    KIND_CONTROLNET: "ControlNet", "ControlNet 模型";
    KIND_ADAPTER: "adapter", "适配器文件";
    KIND_MOTION: "motion module", "运动模块";
    KIND_EMBEDDING: "textual-inversion embedding", "文本反演嵌入";
    KIND_OTHER_VAE: "VAE of another family", "其他系列的 VAE";
    KIND_VAE: "VAE", "单独的 VAE 文件";
    KIND_TEXT_ENCODER: "text encoder", "文本编码器";
    KIND_UPSCALER: "upscaler", "放大模型";
    KIND_UNKNOWN: "file of unknown kind", "未知类型的文件";
    KIND_LFS: "Git LFS pointer", "Git LFS 指针文件，并非模型本身";
    KIND_HTML: "HTML page", "网页文件";
    KIND_JSON: "JSON text", "JSON 文本";
    KIND_ZIP: "zip archive", "zip 或 pickle 格式的文件";
    KIND_GGUF: "GGUF file", "GGUF 文件";
    KIND_HDF5: "HDF5 file", "HDF5 文件";
    KIND_PICTURE: "picture", "图片文件";
    KIND_PACKED: "packed archive", "压缩包";

    // Parts of a checkpoint.
    PART_VAE_DECODER: "VAE decoder", "VAE 解码器";
    PART_VAE_ENCODER: "VAE encoder", "VAE 编码器";
    PART_SAFETY_CHECKER: "safety checker", "安全检查器";

    // Buttons.
    HINT_OPEN_MODEL: "Open a checkpoint", "打开模型";
    HINT_CHOOSE_VAE: "Choose a VAE", "选择 VAE";
    HINT_USE_SIZE: "Try at {size}", "改用 {size} 重试";
    HINT_USE_DEVICE: "Use: {device}", "改用：{device}";
    HINT_USE_F32: "Try in f32", "用 f32 重试";
    HINT_CLEAN: "Clean memory", "清理显存";
    HINT_CHOOSE_FOLDER: "Choose another folder", "选择其他文件夹";
    HINT_TRY_AGAIN: "Try again", "重试";
    HINT_SAVE_AS: "Save as…", "另存为…";
    HINT_INSTALL: "Copy the install command", "复制安装命令";
    HINT_CHECK_DOWNLOAD: "Show the file", "显示文件";
}

/// What happened, in one or two sentences.
pub fn headline(lang: Lang, problem: &Problem) -> String {
    match problem {
        Problem::Request(error) => request_error(lang, error),
        Problem::FileUnreadable { path } => FILE_UNREADABLE.with(lang, &[("file", &name(path))]),
        Problem::FileDamaged { path, what } => {
            FILE_DAMAGED.with(lang, &[("file", &name(path)), ("what", &flaw(lang, what))])
        }
        Problem::FileIncomplete { path, have, need } => {
            FILE_INCOMPLETE.with(lang, &[("file", &name(path)), ("have", have), ("need", need)])
        }
        Problem::FileChanged { path } => FILE_CHANGED.with(lang, &[("file", &name(path))]),
        Problem::WrongKind { path, kind } => wrong_kind(lang, WRONG_KIND, path, kind, ADVICE_KIND),
        Problem::NotVae { path, kind } => wrong_kind(lang, NOT_VAE, path, kind, ADVICE_VAE),
        Problem::NoVae { path } => NO_VAE.with(lang, &[("file", &name(path))]),
        Problem::BadCheckpoint { path, what } => {
            BAD_CHECKPOINT.with(lang, &[("file", &name(path)), ("what", &flaw(lang, what))])
        }
        Problem::NoModel => NO_MODEL.get(lang).to_owned(),
        Problem::DeviceUnavailable { device, why } => {
            DEVICE_UNAVAILABLE.with(lang, &[("device", device), ("why", &reason(lang, why))])
        }
        Problem::DeviceLost { device } => DEVICE_LOST.with(lang, &[("device", device)]),
        Problem::DeviceFault { device } => DEVICE_FAULT.with(lang, &[("device", device)]),
        Problem::DoesNotFit { need, have, limit, fits: Some(fits) } => DOES_NOT_FIT_BUT
            .with(lang, &[("need", need), ("have", have), ("limit", limit), ("size", &size(lang, *fits))]),
        Problem::DoesNotFit { need, have, limit, fits: None } => {
            DOES_NOT_FIT.with(lang, &[("need", need), ("have", have), ("limit", limit)])
        }
        Problem::OutOfMemory { phase } => match phase {
            Phase::Loading => OUT_OF_MEMORY_LOADING.get(lang).to_owned(),
            Phase::Encoding => OUT_OF_MEMORY_ENCODING.get(lang).to_owned(),
            Phase::Denoising { step, .. } => OUT_OF_MEMORY_STEP.with(lang, &[("step", step)]),
            Phase::Decoding => OUT_OF_MEMORY_DECODING.get(lang).to_owned(),
            Phase::Saving => OUT_OF_MEMORY_SAVING.get(lang).to_owned(),
        },
        Problem::LatentNotFinite { step } => LATENT_NOT_FINITE.with(lang, &[("step", step)]),
        Problem::WeightsNotFinite { path, step } => {
            WEIGHTS_NOT_FINITE.with(lang, &[("step", step), ("file", &name(path))])
        }
        Problem::PictureNotFinite => PICTURE_NOT_FINITE.get(lang).to_owned(),
        Problem::NotSaved { folder, .. } => PROBLEM_NOT_SAVED.with(lang, &[("folder", &folder.display())]),
        Problem::Internal(what) => INTERNAL.with(lang, &[("what", what)]),
    }
}

/// Which setting does not hold.
pub fn request_error(lang: Lang, error: &RequestError) -> String {
    match error {
        RequestError::Size { width, height } => BAD_SIZE.with(lang, &[("width", width), ("height", height)]),
        RequestError::SizeText(text) => BAD_SIZE_TEXT.with(lang, &[("text", text)]),
        RequestError::Steps(steps) => BAD_STEPS.with(lang, &[("steps", steps)]),
        RequestError::Cfg(cfg) => BAD_CFG.with(lang, &[("cfg", cfg)]),
        RequestError::ClipSkip(skip) => BAD_CLIP_SKIP.with(lang, &[("skip", skip)]),
        RequestError::Layers { skip, layers } => BAD_LAYERS.with(lang, &[("skip", skip), ("layers", layers)]),
        RequestError::Factor { size: wanted, factor } => {
            BAD_FACTOR.with(lang, &[("size", &size(lang, *wanted)), ("factor", factor)])
        }
        RequestError::Count(count) => BAD_COUNT.with(lang, &[("count", count)]),
        RequestError::PairSteps { sampler, schedule, steps, least, most } => BAD_PAIR_STEPS.with(
            lang,
            &[
                ("sampler", &sampler.label()),
                ("schedule", &schedule.label()),
                ("steps", steps),
                ("least", least),
                ("most", most),
            ],
        ),
        RequestError::Pair { sampler, schedule } => {
            BAD_PAIR.with(lang, &[("sampler", &sampler.label()), ("schedule", &schedule.label())])
        }
    }
}

/// The words on a hint's button.
pub fn hint(lang: Lang, hint: &Hint) -> String {
    let fixed = match hint {
        Hint::UseSize(wanted) => return HINT_USE_SIZE.with(lang, &[("size", &size(lang, *wanted))]),
        Hint::UseDevice(choice) => return HINT_USE_DEVICE.with(lang, &[("device", &device_choice(lang, *choice))]),
        Hint::OpenModel => HINT_OPEN_MODEL,
        Hint::ChooseVae => HINT_CHOOSE_VAE,
        Hint::UseF32 => HINT_USE_F32,
        Hint::CleanMemory => HINT_CLEAN,
        Hint::ChooseFolder => HINT_CHOOSE_FOLDER,
        Hint::TryAgain => HINT_TRY_AGAIN,
        Hint::SaveAs => HINT_SAVE_AS,
        Hint::Install(_) => HINT_INSTALL,
        Hint::CheckDownload => HINT_CHECK_DOWNLOAD,
    };
    fixed.get(lang).to_owned()
}

/// What a file is instead, and what to do about it: by its kind where that tells, else `otherwise`.
fn wrong_kind(lang: Lang, sentence: Phrase, path: &Path, kind: &str, otherwise: Phrase) -> String {
    // Inspection says "a Git LFS pointer", and "LoRA": the article is this function's business.
    let bare = kind.strip_prefix("an ").or_else(|| kind.strip_prefix("a ")).unwrap_or(kind);
    let kind = kind_name(lang, bare);
    let article = match lang {
        Lang::En => article(bare),
        // Chinese sets no space before a Han character and one before a Latin letter.
        Lang::Zh if kind.starts_with(|c: char| c.is_ascii_alphanumeric()) => " ",
        Lang::Zh => "",
    };
    sentence.with(
        lang,
        &[
            ("file", &name(path)),
            ("article", &article),
            ("kind", &kind),
            ("advice", &advice(bare).unwrap_or(otherwise).get(lang)),
        ],
    )
}

/// How to come from this kind of file to the one that is meant.
fn advice(kind: &str) -> Option<Phrase> {
    const BY_KIND: [(&str, Phrase); 6] = [
        ("git lfs", ADVICE_LFS),
        ("html page", ADVICE_PAGE),
        ("json text", ADVICE_PAGE),
        ("pickle", ADVICE_PICKLE),
        ("gguf", ADVICE_PICKLE),
        ("packed archive", ADVICE_UNPACK),
    ];
    let lower = kind.to_lowercase();
    BY_KIND.iter().find(|(word, _)| lower.contains(word)).map(|(_, advice)| *advice)
}

/// The kind in the language, where it is one of those known; else as inspection called it.
pub fn kind_name(lang: Lang, kind: &str) -> String {
    /// A word that tells the kind, the telling ones first.
    const KNOWN: [(&str, Phrase); 23] = [
        ("inpaint", KIND_INPAINTING),
        ("editing", KIND_EDIT),
        ("refiner", KIND_REFINER),
        ("lora", KIND_LORA),
        ("controlnet", KIND_CONTROLNET),
        ("adapter", KIND_ADAPTER),
        ("motion", KIND_MOTION),
        ("embedding", KIND_EMBEDDING),
        ("vae of another", KIND_OTHER_VAE),
        ("vae", KIND_VAE),
        ("text encoder", KIND_TEXT_ENCODER),
        ("upscaler", KIND_UPSCALER),
        ("unknown", KIND_UNKNOWN),
        ("lfs", KIND_LFS),
        ("html", KIND_HTML),
        ("json", KIND_JSON),
        ("zip", KIND_ZIP),
        ("pickle", KIND_ZIP),
        ("gguf", KIND_GGUF),
        ("hdf5", KIND_HDF5),
        ("picture", KIND_PICTURE),
        ("packed", KIND_PACKED),
        ("archive", KIND_PACKED),
    ];
    if lang == Lang::En {
        return kind.to_owned();
    }
    let lower = kind.to_lowercase();
    if let Some((_, phrase)) = KNOWN.iter().find(|(word, _)| lower.contains(word)) {
        return phrase.get(lang).to_owned();
    }
    match kind.strip_suffix(" checkpoint") {
        Some(name) => KIND_CHECKPOINT.with(lang, &[("name", &name)]),
        None => kind.to_owned(),
    }
}

/// A part of a checkpoint in the language; else as inspection called it.
pub fn part(lang: Lang, label: &str) -> &str {
    const PARTS: [Phrase; 4] = [KIND_TEXT_ENCODER, PART_VAE_DECODER, PART_VAE_ENCODER, PART_SAFETY_CHECKER];
    PARTS.iter().find(|part| part.en == label).map_or(label, |part| part.get(lang))
}

/// "a" or "an", by how the first word is said: letters of an abbreviation are said one by one.
fn article(kind: &str) -> &'static str {
    let mut letters = kind.chars();
    let first = letters.next().unwrap_or('x');
    let spelled = first.is_uppercase() && letters.next().is_some_and(|c| c.is_uppercase());
    let vowels = if spelled { "AEFHILMNORSX" } else { "AEIOUaeiou" };
    if vowels.contains(first) { "an" } else { "a" }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Bytes, DeviceChoice, Flaw, Reason, SamplerKind, ScheduleKind, Size};
    use std::path::PathBuf;

    fn every_problem() -> Vec<Problem> {
        let path = PathBuf::from("/models/x.safetensors");
        let text = String::from("t");
        let mut all = vec![
            Problem::Request(RequestError::Steps(0)),
            Problem::FileUnreadable { path: path.clone() },
            Problem::FileDamaged { path: path.clone(), what: Flaw::HeaderNoText },
            Problem::FileIncomplete { path: path.clone(), have: Bytes::gib(1), need: Bytes::gib(2) },
            Problem::FileChanged { path: path.clone() },
            Problem::WrongKind { path: path.clone(), kind: "LoRA".into() },
            Problem::NoVae { path: path.clone() },
            Problem::NotVae { path: path.clone(), kind: "LoRA".into() },
            Problem::WeightsNotFinite { path: path.clone(), step: 3 },
            Problem::DoesNotFit {
                need: Bytes::gib(9),
                have: Bytes::gib(3),
                limit: Bytes::gib(7),
                fits: Some(Size::default()),
            },
            Problem::BadCheckpoint { path: path.clone(), what: Flaw::Betas(text.clone()) },
            Problem::NoModel,
            Problem::DeviceUnavailable { device: text.clone(), why: Reason::NoCard },
            Problem::DeviceLost { device: text.clone() },
            Problem::DeviceFault { device: text.clone() },
            Problem::DoesNotFit { need: Bytes::gib(9), have: Bytes::gib(3), limit: Bytes::gib(7), fits: None },
            Problem::LatentNotFinite { step: 3 },
            Problem::PictureNotFinite,
            Problem::NotSaved { folder: path.clone(), why: Reason::DiskFull(path) },
            Problem::Internal(text),
        ];
        for phase in
            [Phase::Loading, Phase::Encoding, Phase::Denoising { step: 2, of: 9 }, Phase::Decoding, Phase::Saving]
        {
            all.push(Problem::OutOfMemory { phase });
        }
        all
    }

    #[test]
    fn every_problem_is_said_in_both_languages_and_differently() {
        let all = every_problem();
        for lang in Lang::ALL {
            let said: std::collections::HashSet<_> = all.iter().map(|problem| headline(lang, problem)).collect();
            assert_eq!(said.len(), all.len());
            assert!(said.iter().all(|text| !text.contains(['{', '}'])));
        }
    }

    #[test]
    fn wrong_files_are_named_with_the_right_article() {
        let say =
            |lang, kind: &str| headline(lang, &Problem::WrongKind { path: PathBuf::from("x"), kind: kind.into() });
        assert_eq!(
            say(Lang::En, "SDXL checkpoint"),
            "x is an SDXL checkpoint. Softbox makes pictures with Stable Diffusion 1.5."
        );
        assert_eq!(say(Lang::Zh, "SDXL checkpoint"), "x 是 SDXL 模型。Softbox 使用 Stable Diffusion 1.5。");
        for (kind, start) in [
            ("LoRA", "x is a LoRA."),
            ("Flux checkpoint", "x is a Flux"),
            ("VAE file", "x is a VAE"),
            ("inpainting checkpoint", "x is an inpainting"),
            ("an HTML page", "x is an HTML page."),
            ("a Git LFS pointer to a file of 3 bytes", "x is a Git LFS pointer to"),
            ("a zip archive (a pickled torch checkpoint)", "x is a zip archive ("),
            ("adapter", "x is an adapter."),
            ("", "x is a "),
        ] {
            assert!(say(Lang::En, kind).starts_with(start), "{}", say(Lang::En, kind));
        }
        for (kind, start) in [
            ("SD1.5 inpainting checkpoint (9 input channels)", "x 是局部重绘模型。"),
            ("SD2 checkpoint", "x 是 SD2 模型。"),
            ("VAE of another family", "x 是其他系列的 VAE。"),
            ("LoRA", "x 是 LoRA 文件。"),
            ("textual-inversion embedding", "x 是文本反演嵌入。"),
            ("a zip archive (a pickled torch checkpoint)", "x 是 zip 或 pickle 格式的文件。"),
            ("a packed archive", "x 是压缩包。"),
        ] {
            assert!(say(Lang::Zh, kind).starts_with(start), "{}", say(Lang::Zh, kind));
        }
    }

    #[test]
    fn a_wrong_file_comes_with_the_way_to_the_right_one() {
        for (kind, words) in [
            ("a Git LFS pointer", "git lfs pull"),
            ("an HTML page", "download it again"),
            ("a zip archive (a pickled torch checkpoint)", "safetensors"),
            ("folder with pickled weights only", "safetensors"),
            ("a packed archive", "Unpack"),
            ("ControlNet", "Stable Diffusion 1.5"),
        ] {
            for lang in Lang::ALL {
                let said = headline(lang, &Problem::WrongKind { path: "m.safetensors".into(), kind: kind.into() });
                assert!(said.starts_with("m.safetensors"), "{said}");
                assert!(lang == Lang::Zh || said.contains(words), "{said}");
            }
        }
        let vae = headline(Lang::En, &Problem::NotVae { path: "/m/x".into(), kind: "SD1.5 checkpoint".into() });
        assert_eq!(vae, "x is an SD1.5 checkpoint, not a VAE. Choose a VAE of Stable Diffusion 1.5.");
    }

    #[test]
    fn the_words_of_the_table_hold() {
        let decode = Problem::OutOfMemory { phase: Phase::Decoding };
        assert_eq!(headline(Lang::En, &decode), "Not enough memory to decode at this size. The latent is kept.");
        assert_eq!(headline(Lang::Zh, &decode), "显存不足，无法以此尺寸解码。潜变量已保留。");
    }

    #[test]
    fn every_hint_and_every_wrong_setting_has_words() {
        let hints = [
            Hint::OpenModel,
            Hint::ChooseVae,
            Hint::UseSize(Size::default()),
            Hint::UseDevice(DeviceChoice::Cpu),
            Hint::UseF32,
            Hint::CleanMemory,
            Hint::ChooseFolder,
            Hint::TryAgain,
            Hint::SaveAs,
            Hint::Install("pip install x".into()),
            Hint::CheckDownload,
        ];
        let errors = [
            RequestError::Size { width: 1, height: 2 },
            RequestError::SizeText("a".into()),
            RequestError::Steps(0),
            RequestError::Cfg(99.0),
            RequestError::ClipSkip(0),
            RequestError::Layers { skip: 9, layers: 3 },
            RequestError::Factor { size: Size::default(), factor: 16 },
            RequestError::Count(0),
            RequestError::Pair { sampler: SamplerKind::Ddim, schedule: ScheduleKind::Karras },
            RequestError::PairSteps {
                sampler: SamplerKind::Lcm,
                schedule: ScheduleKind::Normal,
                steps: 60,
                least: 1,
                most: 50,
            },
        ];
        for lang in Lang::ALL {
            let words: std::collections::HashSet<_> = hints.iter().map(|h| hint(lang, h)).collect();
            assert_eq!(words.len(), hints.len());
            let words: std::collections::HashSet<_> = errors.iter().map(|e| request_error(lang, e)).collect();
            assert_eq!(words.len(), errors.len());
        }
        assert_eq!(hint(Lang::En, &Hint::UseSize(Size::default())), "Try at 512×768");
    }
}
