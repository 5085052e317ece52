//! Quiet lines: worth knowing, nothing to answer.

use super::figures::{percent, pictures, took};
use super::reasons::reason;
use super::{Lang, phrases};
use crate::base::{Notice, Reason};
use std::path::Path;

phrases! {
    PROMPT_SCHEDULING: "Prompt scheduling is not supported yet and has no effect: {part}", "暂不支持提示词切换语法，以下内容不起作用：{part}";
    PROMPT_ALTERNATION: "Alternating words are not supported yet and have no effect: {part}", "暂不支持交替词语法，以下内容不起作用：{part}";
    PROMPT_COMPOSITION: "AND between prompts is not supported yet and has no effect.", "暂不支持用 AND 组合提示词，它不起作用。";
    PROMPT_EXTRA_NETWORK: "{part} is not supported yet and was left out.", "暂不支持 {part}，已忽略。";
    PROMPT_NOT_ENGLISH: "The text encoder of Stable Diffusion 1.5 knows English only.", "Stable Diffusion 1.5 只懂英文，请用英文书写提示词。";
    ONE_UNKNOWN_TENSOR: "The checkpoint holds a tensor that no part uses: {first}", "模型中有 1 个未使用的张量：{first}";
    UNKNOWN_TENSORS: "The checkpoint holds {count} tensors that no part uses, the first of them {first}", "模型中有 {count} 个未使用的张量，其中第一个是 {first}";
    VAE_TAKEN: "The checkpoint has no VAE; {file} is used.", "模型不含 VAE，已使用 {file}。";
    V_PREDICTION: "This checkpoint predicts v; it is sampled so.", "此模型为 v 预测模型，已按此采样。";
    DECODED_AGAIN: "The picture was decoded again in {precision}, since the first try held invalid values.", "首次解码出现无效数值，已改用 {precision} 重新解码。";
    ALL_BLACK: "The picture is black all over: the checkpoint or its VAE is probably damaged or does not fit.", "图片全黑：模型或其 VAE 可能已损坏或不匹配。";
    ONE_COLOUR: "The picture is one colour all over: the checkpoint or its VAE is probably damaged or does not fit.", "图片只有一种颜色：模型或其 VAE 可能已损坏或不匹配。";
    NOISE_MODEL: "These are random weights: pictures are noise.", "当前为随机权重，图片只是噪点。";
    BETTER_DEVICE: "{device} is not used: {why}.", "未使用 {device}：{why}。";
    BETTER_DEVICE_COMMAND: "{device} is not used: {why}. This command helps: {command}", "未使用 {device}：{why}。可运行此命令解决：{command}";
    DEVICE_REPLACED: "{lost} stopped answering; {now} is used from here on.", "{lost} 停止响应，已改用 {now}。";
    OVER_LIMIT: "The card is {used} % full, above the limit of {limit} %. The job goes on, since its own need is small.", "显存已用 {used}%，超过 {limit}% 的上限。本任务所需不多，继续进行。";
    GAUGE_UNKNOWN: "Some of the memory cannot be read: {why}.", "部分显存数据无法读取：{why}。";
    NOTICE_NOT_SAVED: "The picture was not saved: {why}.", "图片未保存：{why}。";

    // Of the window itself.
    DONE: "Done: {pictures} in {time}.", "完成：{pictures}，用时 {time}。";
    CANCELLED: "Cancelled.", "已取消。";
    SAVED: "Saved {file}.", "已保存 {file}。";
    COPIED: "Copied.", "已复制。";
    SETTINGS_TAKEN: "The picture's settings are in the fields.", "已填入该图片的参数。";
    NO_SETTINGS: "This picture holds no settings.", "这张图片不含生成参数。";
    QUEUE_FULL: "The queue is full: {count} jobs wait.", "队列已满：{count} 个任务等待中。";
    VAE_CHOSEN: "{file} decodes the pictures from here on.", "之后使用 {file} 解码图片。";
    NO_DIALOG: "The system opened no file dialog. Install xdg-desktop-portal or zenity; files can also be dropped onto the window.", "系统未能打开文件对话框。请安装 xdg-desktop-portal 或 zenity，也可以把文件拖到窗口中。";
    DID_NOT_WORK: "That did not work: {why}.", "操作失败：{why}。";
}

/// What the engine found worth saying.
pub fn notice(lang: Lang, notice: &Notice) -> String {
    match notice {
        Notice::PromptScheduling(part) => PROMPT_SCHEDULING.with(lang, &[("part", part)]),
        Notice::PromptAlternation(part) => PROMPT_ALTERNATION.with(lang, &[("part", part)]),
        Notice::PromptComposition => PROMPT_COMPOSITION.get(lang).to_owned(),
        Notice::PromptExtraNetwork(part) => PROMPT_EXTRA_NETWORK.with(lang, &[("part", part)]),
        Notice::PromptNotEnglish => PROMPT_NOT_ENGLISH.get(lang).to_owned(),
        Notice::UnknownTensors { count: 1, first } => ONE_UNKNOWN_TENSOR.with(lang, &[("first", first)]),
        Notice::UnknownTensors { count, first } => UNKNOWN_TENSORS.with(lang, &[("count", count), ("first", first)]),
        Notice::VaeTaken(path) => VAE_TAKEN.with(lang, &[("file", &file_name(path))]),
        Notice::VPrediction => V_PREDICTION.get(lang).to_owned(),
        Notice::DecodedAgain(precision) => DECODED_AGAIN.with(lang, &[("precision", precision)]),
        Notice::OneColour { black: true } => ALL_BLACK.get(lang).to_owned(),
        Notice::OneColour { black: false } => ONE_COLOUR.get(lang).to_owned(),
        Notice::NoiseModel => NOISE_MODEL.get(lang).to_owned(),
        Notice::BetterDevice { device, why, command } => better_device(lang, device, why, command.as_deref()),
        Notice::DeviceReplaced { lost, now } => DEVICE_REPLACED.with(lang, &[("lost", lost), ("now", now)]),
        Notice::OverLimit { used, limit } => {
            OVER_LIMIT.with(lang, &[("used", &percent(*used)), ("limit", &percent(*limit))])
        }
        Notice::GaugeUnknown(why) => GAUGE_UNKNOWN.with(lang, &[("why", &reason(lang, why))]),
        Notice::NotSaved { why } => NOTICE_NOT_SAVED.with(lang, &[("why", &reason(lang, why))]),
    }
}

/// Why a better device is not used, and what would help.
pub fn better_device(lang: Lang, device: &str, why: &Reason, command: Option<&str>) -> String {
    let why = reason(lang, why);
    match command {
        Some(command) => BETTER_DEVICE_COMMAND.with(lang, &[("device", &device), ("why", &why), ("command", &command)]),
        None => BETTER_DEVICE.with(lang, &[("device", &device), ("why", &why)]),
    }
}

/// "Done: 2 pictures in 12.4 s."
pub fn done(lang: Lang, images: u32, seconds: f64) -> String {
    DONE.with(lang, &[("pictures", &pictures(lang, images)), ("time", &took(lang, seconds))])
}

/// "Saved 0001-42.png."
pub fn saved(lang: Lang, file: &Path) -> String {
    SAVED.with(lang, &[("file", &file_name(file))])
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_notice_is_said_in_both_languages() {
        let text = || String::from("x");
        let all = [
            Notice::PromptScheduling("[a:b:0.5]".into()),
            Notice::PromptAlternation("[a|b]".into()),
            Notice::PromptComposition,
            Notice::PromptExtraNetwork("<lora:x:1>".into()),
            Notice::PromptNotEnglish,
            Notice::UnknownTensors { count: 1, first: text() },
            Notice::UnknownTensors { count: 4, first: text() },
            Notice::VaeTaken("/m/vae-ft-mse.safetensors".into()),
            Notice::VPrediction,
            Notice::DecodedAgain("f32"),
            Notice::NoiseModel,
            Notice::BetterDevice { device: text(), why: Reason::NoCard, command: None },
            Notice::BetterDevice { device: text(), why: Reason::NoCompiler, command: Some("pip install y".into()) },
            Notice::DeviceReplaced { lost: text(), now: text() },
            Notice::OverLimit { used: 0.934, limit: 0.9 },
            Notice::GaugeUnknown(Reason::NotListed),
            Notice::NotSaved { why: Reason::DiskFull("/p".into()) },
            Notice::OneColour { black: true },
            Notice::OneColour { black: false },
        ];
        for lang in Lang::ALL {
            let said: HashSet<_> = all.iter().map(|one| notice(lang, one)).collect();
            assert_eq!(said.len(), all.len());
        }
        assert!(notice(Lang::En, &all[0]).ends_with("[a:b:0.5]"));
        assert!(notice(Lang::En, &all[7]).contains(" vae-ft-mse.safetensors is used"));
        assert!(notice(Lang::Zh, &all[14]).contains("93%"));
    }

    #[test]
    fn endings_of_jobs_are_said_with_figures() {
        assert_eq!(done(Lang::En, 2, 12.44), "Done: 2 pictures in 12.4 s.");
        assert_eq!(done(Lang::Zh, 1, 6.0), "完成：1 张图片，用时 6.0 秒。");
        assert_eq!(saved(Lang::En, Path::new("/a/b.png")), "Saved b.png.");
    }

    #[test]
    fn a_reason_ends_in_one_stop() {
        let said = better_device(Lang::En, "CUDA", &Reason::NoCard, Some("pip install z"));
        assert_eq!(said, "CUDA is not used: no NVIDIA card answers. This command helps: pip install z");
    }
}
