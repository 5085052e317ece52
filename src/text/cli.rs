//! What the command line prints besides its JSON. (The help texts of its options are English, beside the options.)

use super::figures::{pictures, took};
use super::{Lang, phrases};
use crate::base::Bytes;
use std::path::Path;

phrases! {
    ERROR: "Error: {what}", "错误：{what}";
    NOTE: "Note: {what}", "提示：{what}";
    DETAILS_LINE: "Details: {what}", "详细信息：{what}";
    USING_DEVICE: "Device: {device}, {precision}", "设备：{device}，{precision}";
    CLI_SAVED: "Saved {file}", "已保存 {file}";
    CLI_LATENTS_SAVED: "Saved the latents to {file}", "潜变量已保存到 {file}";
    CLI_DONE: "{pictures} in {time}, at most {peak} of memory", "{pictures}，用时 {time}，内存峰值 {peak}";
    CLI_DONE_NO_PEAK: "{pictures} in {time}", "{pictures}，用时 {time}";
    INTERRUPTED: "Interrupted. Finished pictures are kept.", "已中断。已完成的图片均已保留。";
    INTERRUPTING: "Stopping after this step. Press Ctrl+C again to stop at once.", "本步结束后停止。再按一次 Ctrl+C 立即停止。";
    CANNOT_WRITE: "{file} cannot be written: {why}", "无法写入 {file}：{why}";
    CANNOT_READ: "{file} cannot be read: {why}", "无法读取 {file}：{why}";
    NO_WINDOW: "The window cannot open: {why}. The command line works without one; see softbox --help.", "无法打开窗口：{why}。命令行无需窗口即可使用，请参阅 softbox --help。";

    // devices
    DEVICE_USABLE: "{device}: usable", "{device}：可用";
    DEVICE_USABLE_MEMORY: "{device}: usable, {memory}", "{device}：可用，{memory}";
    DEVICE_NOT_USABLE: "{device}: not usable, {why}", "{device}：不可用，{why}";
    DEVICE_COMMAND: "This command helps: {command}", "可运行此命令解决：{command}";
    DEVICE_TAKEN: "Automatic takes {device}", "自动选择会使用 {device}";

    // inspect
    FILE_TENSORS: "{count} tensors, {size}", "{count} 个张量，共 {size}";
    HAS_VAE: "Has its own VAE", "自带 VAE";
    CLI_NO_VAE: "Has no VAE: choose one with --vae", "不含 VAE：请用 --vae 指定";
    NO_SETTINGS_IN: "{file} holds no settings", "{file} 不含生成参数";

    // bench
    BENCH_RUN: "Run {run} of {runs}: {time}", "第 {run} 次，共 {runs} 次：{time}";
    BENCH_STEP: "A step takes {time} ms (median of {count})", "每步 {time} 毫秒（{count} 步的中位数）";
}

/// "Error: …", then the technical part in a line of its own, if there is any.
pub fn error(lang: Lang, what: &str, details: &str) -> String {
    let mut said = ERROR.with(lang, &[("what", &what)]);
    if !details.trim().is_empty() {
        said.push('\n');
        said.push_str(&DETAILS_LINE.with(lang, &[("what", &details.trim())]));
    }
    said
}

/// "2 pictures in 12.4 s, at most 3.1 GiB of memory"
pub fn done(lang: Lang, images: u32, seconds: f64, peak: Option<Bytes>) -> String {
    let (pictures, time) = (pictures(lang, images), took(lang, seconds));
    match peak {
        Some(peak) => CLI_DONE.with(lang, &[("pictures", &pictures), ("time", &time), ("peak", &peak)]),
        None => CLI_DONE_NO_PEAK.with(lang, &[("pictures", &pictures), ("time", &time)]),
    }
}

/// The whole path, so that it can be copied.
pub fn saved(lang: Lang, file: &Path) -> String {
    CLI_SAVED.with(lang, &[("file", &file.display())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_and_then_the_details() {
        assert_eq!(error(Lang::En, "No checkpoint.", ""), "Error: No checkpoint.");
        assert_eq!(error(Lang::Zh, "没有模型。", "x.safetensors"), "错误：没有模型。\n详细信息：x.safetensors");
    }

    #[test]
    fn an_unknown_peak_is_left_out() {
        assert_eq!(done(Lang::En, 1, 6.24, None), "1 picture in 6.2 s");
        assert_eq!(done(Lang::En, 2, 90.0, Some(Bytes::gib(3))), "2 pictures in 1 min 30 s, at most 3.0 GiB of memory");
        assert_eq!(saved(Lang::Zh, Path::new("/a/b.png")), "已保存 /a/b.png");
    }
}
