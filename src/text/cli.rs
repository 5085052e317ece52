//! What the command line prints besides its JSON and its help.

use super::figures::{pictures, took};
use super::{Lang, phrases};
use crate::base::Bytes;
use crate::base::Hint;
use std::path::Path;

phrases! {
    ERROR: "Error: {what}", "错误：{what}";
    NOTE: "Note: {what}", "提示：{what}";
    HINT_LINE: "What helps: {what}", "解决办法：{what}";
    HELP_INSTALL: "this command: {command}", "运行此命令：{command}";
    DETAILS_LINE: "Details: {what}", "详细信息：{what}";
    USING_DEVICE: "Device: {device}, {precision}", "设备：{device}，{precision}";
    POCKET_USED: "The model is Pocket, a small demonstration inside the program. Open a Stable Diffusion 1.5 checkpoint with --model FILE.", "当前模型是 Pocket，程序内置的小型演示模型。用 --model FILE 可打开 Stable Diffusion 1.5 模型。";
    CLI_SAVED: "Saved {file}", "已保存 {file}";
    CLI_LATENTS_SAVED: "Saved the latents to {file}", "潜变量已保存到 {file}";
    CLI_DONE: "{pictures} in {time}, at most {peak} of memory", "{pictures}，用时 {time}，内存峰值 {peak}";
    CLI_DONE_NO_PEAK: "{pictures} in {time}", "{pictures}，用时 {time}";
    INTERRUPTED: "Interrupted. Finished pictures are kept.", "已中断。已完成的图片均已保留。";
    INTERRUPTING: "Stopping after this step. Press Ctrl+C again to stop at once.", "本步结束后停止。再按一次 Ctrl+C 立即停止。";
    CANNOT_READ: "{file} cannot be read: {why}.", "无法读取 {file}：{why}。";
    BAD_SCRIPT: "The gauge script {file} cannot be used: {why}.", "读数脚本 {file} 无法使用：{why}。";
    NO_THREAD: "The part of Softbox that makes pictures did not start: {why}.", "Softbox 的生成部分无法启动：{why}。";
    OUTPUT_LOST: "Standard output cannot be written: {why}.", "无法写入标准输出：{why}。";
    NO_DISPLAY: "The window cannot open: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). The command line works without one; see softbox --help.", "无法打开窗口：没有显示器（DISPLAY 和 WAYLAND_DISPLAY 均未设置）。命令行无需窗口即可使用，请参阅 softbox --help。";
    NO_WINDOW: "The window cannot open: the display does not answer, or cannot draw it. The command line works without one; see softbox --help.", "无法打开窗口：显示器没有响应或无法绘制。命令行无需窗口即可使用，请参阅 softbox --help。";

    // Where things are written to.
    TARGET_FULL: "The disk of {path} is full.", "{path} 所在的磁盘已满。";
    TARGET_READ_ONLY: "{path} cannot be written to.", "{path} 不可写入。";
    TARGET_NO_FOLDER: "{path} is a file, not a folder.", "{path} 是文件，不是文件夹。";
    TARGET_NO_FILE: "{path} is there already and is no file.", "{path} 已存在，且不是文件。";
    TARGET_OTHER_KIND: "{path} is another kind of file and is not replaced.", "{path} 是其他类型的文件，不会被覆盖。";
    TARGET_ELSE: "{path} cannot be written: {why}.", "无法写入 {path}：{why}。";
    CHOOSE_ANOTHER: "{reason} Choose another place with {option}.", "{reason}请用 {option} 指定其他位置。";
    SAVED_ELSEWHERE: "{why}. It is in {file} instead.", "{why}。已改存为 {file}。";
    NOT_SAVED_ANYWHERE: "The picture could not be saved: {why}.", "图片无法保存：{why}。";
    OUT_CONTRADICTS: "--out {path} and --output-format {format} contradict each other.", "--out {path} 与 --output-format {format} 互相矛盾。";
    OUT_ENDING: "--out {path}: a picture's file ends in .png, .jpg or .webp, a folder in /.", "--out {path}：图片文件须以 .png、.jpg 或 .webp 结尾，文件夹须以 / 结尾。";

    // Wrong usage.
    USAGE_UNFIT: "{argument} {value} does not work: {why}.", "{argument} {value} 不可用：{why}。";
    USAGE_ONE_OF: "{argument} {value} does not work: possible are {possible}.", "{argument} {value} 不可用，可选：{possible}。";
    USAGE_NO_VALUE: "{argument} needs a value.", "{argument} 缺少取值。";
    USAGE_TOO_MANY: "{argument} does not take this value.", "{argument} 不接受这个取值。";
    USAGE_NO_OPTION: "{argument} is no option of this command.", "此命令没有 {argument} 这个选项。";
    USAGE_NO_COMMAND: "There is no command {command}.", "没有 {command} 这个命令。";
    USAGE_MEANT: "{sentence} Did you mean {meant}?", "{sentence}是否想用 {meant}？";
    USAGE_MISSING: "{argument} is missing.", "缺少 {argument}。";
    USAGE_TWICE: "{argument} is given twice.", "{argument} 重复出现。";
    USAGE_CONFLICT: "{argument} cannot be used together with {other}.", "{argument} 不能与 {other} 一起使用。";
    USAGE_MISPLACED: "{argument} cannot be used like this.", "{argument} 不能这样使用。";
    USAGE_NOT_UTF8: "One of the arguments is not valid UTF-8 text.", "有一个参数不是有效的 UTF-8 文本。";
    USAGE_HELP: "softbox --help, or softbox COMMAND --help, lists what there is", "softbox --help 或 softbox 命令 --help 可列出全部选项";
    UNFIT_NO_PATH: "a path is missing", "缺少路径";
    UNFIT_LEFT_OUT: "it was left out when this program was built", "编译本程序时未包含它";
    UNFIT_WHOLE: "it is a whole number, such as 4", "应为整数，例如 4";
    UNFIT_NUMBER: "it is a number, such as 7.5", "应为数字，例如 7.5";
    UNFIT_DEVICE: "it is auto, cuda, cuda:N, vulkan, vulkan:N or cpu", "应为 auto、cuda、cuda:N、vulkan、vulkan:N 或 cpu";
    UNFIT_SEED: "a seed is 0 to 18446744073709551615, or -1", "种子应为 0 到 18446744073709551615，或 -1";
    UNFIT_PERCENT: "it is 50 to 98, in percent", "应为 50 到 98 的百分数";
    UNFIT_RUNS: "it is a whole number from 1 to 100", "应为 1 到 100 的整数";
    UNFIT_BYTES: "write an amount of memory like 4GiB, 3500MiB or 4G", "请按 4GiB、3500MiB 或 4G 的形式书写";

    // What helps, in options.
    HELP_VAE: "choose a VAE with --vae FILE", "用 --vae FILE 指定 VAE";
    HELP_SIZE: "a smaller picture, such as --size {size}", "缩小图片，例如 --size {size}";
    HELP_DEVICE: "--device {device}; softbox devices lists them", "使用 --device {device}；softbox devices 可列出全部设备";
    HELP_F32: "full precision, with --dtype f32", "用 --dtype f32 改为全精度";
    HELP_MEMORY: "a smaller --size, a higher --memory-budget, or closing other programs that use the card", "减小 --size、提高 --memory-budget，或关闭其他占用显卡的程序";
    HELP_DOWNLOAD: "downloading the file again", "重新下载该文件";

    // devices
    DEVICE_USABLE: "{device}: usable", "{device}：可用";
    DEVICE_USABLE_MEMORY: "{device}: usable, {memory}", "{device}：可用，{memory}";
    DEVICE_NOT_USABLE: "{device}: not usable, {why}", "{device}：不可用，{why}";
    DEVICE_COMMAND: "This command helps: {command}", "可运行此命令解决：{command}";
    DEVICE_TAKEN: "Automatic takes {device}", "自动选择会使用 {device}";

    // inspect
    FILE_TENSOR: "{count} tensor, {size}", "{count} 个张量，共 {size}";
    FILE_TENSORS: "{count} tensors, {size}", "{count} 个张量，共 {size}";
    TENSORS_MISSING: "missing", "缺失";
    TENSORS_MISSHAPEN: "wrong shape", "形状不符";
    AND_MORE: "{what}: {count} more", "{what}：另有 {count} 个";
    CLI_NO_TEXT_ENCODER: "Has no text encoder, so no pictures can be made with it", "不含文本编码器，因此无法用它生成图片";
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

/// A next step in the command line's own terms; `None` for one that is a click in the window.
pub fn help(lang: Lang, hint: &Hint) -> Option<String> {
    match hint {
        Hint::ChooseVae => Some(HELP_VAE.get(lang).to_owned()),
        Hint::UseSize(size) => {
            let size = format!("{}x{}", size.width(), size.height());
            Some(HELP_SIZE.with(lang, &[("size", &size)]))
        }
        Hint::UseDevice(_) => Some(HELP_DEVICE.with(lang, &[("device", &"auto")])),
        Hint::UseF32 => Some(HELP_F32.get(lang).to_owned()),
        Hint::CleanMemory => Some(HELP_MEMORY.get(lang).to_owned()),
        Hint::CheckDownload => Some(HELP_DOWNLOAD.get(lang).to_owned()),
        Hint::Install(command) => Some(HELP_INSTALL.with(lang, &[("command", command)])),
        Hint::OpenModel | Hint::ChooseFolder | Hint::TryAgain | Hint::SaveAs => None,
    }
}

/// "1 tensor, 3.4 MiB"
pub fn tensors(lang: Lang, count: usize, size: Bytes) -> String {
    let phrase = if count == 1 { FILE_TENSOR } else { FILE_TENSORS };
    phrase.with(lang, &[("count", &count), ("size", &size)])
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
    fn what_helps_is_said_in_options() {
        let size = crate::base::Size::nearest(512, 768);
        assert_eq!(help(Lang::En, &Hint::UseSize(size)).unwrap(), "a smaller picture, such as --size 512x768");
        assert!(help(Lang::Zh, &Hint::ChooseVae).unwrap().contains("--vae"));
        assert_eq!(help(Lang::En, &Hint::SaveAs), None);
        assert_eq!(tensors(Lang::En, 1, Bytes(4)), "1 tensor, 4 B");
    }

    #[test]
    fn an_unknown_peak_is_left_out() {
        assert_eq!(done(Lang::En, 1, 6.24, None), "1 picture in 6.2 s");
        assert_eq!(done(Lang::En, 2, 90.0, Some(Bytes::gib(3))), "2 pictures in 1 min 30 s, at most 3.0 GiB of memory");
        assert_eq!(saved(Lang::Zh, Path::new("/a/b.png")), "已保存 /a/b.png");
    }
}
