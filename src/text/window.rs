//! Words of the window: buttons, labels, tooltips, names for screen readers, the empty canvas.

use super::{Lang, phrases};
use crate::base::problem::Phase;
use crate::base::{DeviceChoice, NoiseSource};

phrases! {

    // The bar at the top.
    CHECKPOINT: "Checkpoint", "模型";
    NO_CHECKPOINT: "No checkpoint", "未选择模型";
    OPEN_CHECKPOINT: "Open a checkpoint", "打开模型";
    OPEN_CHECKPOINT_FILE: "Open a checkpoint file…", "打开模型文件…";
    OPEN_CHECKPOINT_FOLDER: "Open a diffusers folder…", "打开 diffusers 文件夹…";
    RECENT_CHECKPOINTS: "Recent", "最近使用";
    POCKET: "Pocket, the small model inside", "内置小模型 Pocket";
    POCKET_CHOSEN: "Pocket · demonstration", "Pocket · 演示模型";
    RANDOM_WEIGHTS: "Random weights (noise, for tests)", "随机权重（仅噪点，测试用）";
    LOOKING_AT: "Looking at {name}…", "正在检查 {name}…";
    VAE: "VAE", "VAE";
    VAE_AUTOMATIC: "Automatic", "自动";
    VAE_AUTOMATIC_HELP: "The checkpoint's own, or an ft-mse VAE found beside it.", "使用模型自带的 VAE，没有时使用旁边找到的 ft-mse VAE。";
    CHOOSE_VAE: "Choose a VAE file…", "选择 VAE 文件…";
    HAS_NO_VAE: "No VAE inside", "不含 VAE";
    DEVICE: "Device", "设备";
    AUTOMATIC: "Automatic", "自动";
    CPU_DEVICE: "CPU", "CPU（处理器）";
    CUDA_DEVICE: "CUDA {index}", "CUDA 显卡 {index}";
    VULKAN_DEVICE: "Vulkan {index}", "Vulkan 显卡 {index}";
    DEVICE_LINE: "{name}, {memory} in all", "{name}，共 {memory}";
    LOOKING_FOR_DEVICE: "Looking for a device…", "正在寻找设备…";
    PASSED_OVER: "{device} is not used: {why}", "未使用 {device}：{why}";
    COPY_COMMAND: "Copy the command that helps", "复制解决命令";
    PRECISION: "Precision", "精度";
    PRECISION_AUTOMATIC: "Automatic ({precision})", "自动（{precision}）";
    LANGUAGE: "Language", "语言";
    LANGUAGE_SYSTEM: "As the system", "跟随系统";
    THEME: "Theme", "主题";
    THEME_SYSTEM: "As the system", "跟随系统";
    THEME_DARK: "Dark", "深色";
    THEME_LIGHT: "Light", "浅色";

    // The left column.
    PROMPT: "Prompt", "提示词";
    PROMPT_PLACEHOLDER: "What should be in the picture", "想要画面里出现什么";
    NEGATIVE_PROMPT: "Negative prompt", "反向提示词";
    NEGATIVE_PLACEHOLDER: "What should not be in it", "不想要出现什么";
    WORDS_KNOWN: "Words it knows", "可用的词";
    EXAMPLE: "Another example", "换一个示例";
    POCKET_LINE: "Pocket is a demonstration. For real portraits:", "Pocket 仅供演示。要生成真实人像：";
    TOKENS_HELP: "{tokens} tokens. The text encoder reads {limit} at a time, so this makes chunks: {chunks}.", "共 {tokens} 个词元。文本编码器每次读取 {limit} 个，因此分为 {chunks} 段。";
    HISTORY_PREVIOUS: "Previous prompt", "上一条提示词";
    HISTORY_NEXT: "Next prompt", "下一条提示词";
    SIZE: "Size", "尺寸";
    WIDTH: "Width", "宽度";
    HEIGHT: "Height", "高度";
    SWAP_SIZE: "Swap width and height", "交换宽高";
    STEPS: "Steps", "步数";
    CFG: "CFG", "CFG";
    CFG_HELP: "How closely the picture follows the prompt. 1 turns guidance off.", "画面贴合提示词的程度。设为 1 时不使用引导。";
    SAMPLER: "Sampler", "采样器";
    SCHEDULE: "Schedule", "调度";
    SCHEDULE_NOT_WITH: "Does not work with {sampler}", "不能与 {sampler} 搭配";
    SEED: "Seed", "种子";
    SEED_RANDOM: "A new seed for every picture", "每张图片使用新种子";
    SEED_REUSE: "Use the newest picture's seed again", "沿用最新图片的种子";
    SEED_HELP: "A whole number, or −1 to draw one", "填写整数，填 −1 则随机抽取";
    COUNT: "Pictures", "数量";
    FOREVER: "Generate forever", "持续生成";
    FOREVER_HELP: "Goes on with new seeds until stopped.", "不断换新种子生成，直到停止。";
    ADVANCED: "Advanced", "高级设置";
    ADVANCED_ONE_DIFFERS: "1 differs from its default", "1 项与默认不同";
    ADVANCED_DIFFER: "{count} differ from their defaults", "{count} 项与默认不同";
    CLIP_SKIP: "Clip skip", "Clip skip";
    CLIP_SKIP_HELP: "1 takes the text encoder's last layer, 2 the one before.", "1 使用文本编码器的最后一层，2 使用倒数第二层。";
    NOISE: "Noise", "噪声";
    NOISE_GPU: "GPU family (as A1111)", "GPU 系（同 A1111）";
    NOISE_CPU: "CPU family (as diffusers)", "CPU 系（同 diffusers）";
    V_PREDICTION: "v-prediction", "v 预测";
    AS_THE_FILE_SAYS: "As the checkpoint says", "以模型为准";
    ON: "On", "开";
    OFF: "Off", "关";
    EMA: "Use EMA weights", "使用 EMA 权重";
    OUTPUT_FOLDER: "Output folder", "输出文件夹";
    CHOOSE_FOLDER: "Choose a folder…", "选择文件夹…";
    FOLDER_DEFAULT: "Default folder", "默认文件夹";
    NAME_PATTERN: "Name", "文件名";
    NAME_PATTERN_HELP: "May hold {fields}.", "可使用 {fields}。";
    FORMAT: "Format", "格式";
    RESET_HELP: "Double-click to reset", "双击恢复默认值";

    // The foot of the left column.
    GENERATE: "Generate", "生成";
    GENERATE_HELP: "Ctrl+Enter", "快捷键 Ctrl+Enter";
    QUEUE: "Queue", "加入队列";
    PAUSE: "Pause", "暂停";
    RESUME: "Resume", "继续";
    RESUME_ANYWAY: "Resume anyway", "仍然继续";
    STOP_AND_KEEP: "Stop and keep", "停止并保留";
    STOP_AND_KEEP_HELP: "Decode the picture as it is now and end the job.", "按当前进度解码图片并结束任务。";
    CANCEL: "Cancel", "取消";
    CANCEL_HELP: "Esc", "快捷键 Esc";
    CANCEL_ALL: "Cancel all", "全部取消";
    PAUSING: "Pausing after this step…", "本步结束后暂停…";
    STOPPING: "Stopping after this step…", "本步结束后停止…";
    CANCELLING: "Cancelling…", "正在取消…";
    RESUMING: "Resuming…", "正在继续…";
    WAITING_JOBS: "{count} waiting", "{count} 个等待中";
    JOB_WAITING: "Waiting", "等待中";

    // Progress.
    PHASE_LOADING: "Loading the checkpoint", "正在加载模型";
    PHASE_ENCODING: "Encoding the prompt", "正在编码提示词";
    PHASE_STEP: "Step {step} of {steps}", "第 {step} 步，共 {steps} 步";
    PHASE_DECODING: "Decoding the picture", "正在解码图片";
    PHASE_SAVING: "Saving the picture", "正在保存图片";
    PICTURE_OF: "Picture {image} of {images}", "第 {image} 张，共 {images} 张";
    PACE: "{pace} it/s", "{pace} it/s";
    TIME_LEFT: "{time} left", "剩余 {time}";
    PROGRESS: "Progress", "进度";

    // The canvas.
    EMPTY_TITLE: "No checkpoint yet", "还没有模型";
    EMPTY_BODY: "Open a Stable Diffusion 1.5 checkpoint: a .safetensors file, or a diffusers folder. You can also drop it here.", "请打开 Stable Diffusion 1.5 模型：.safetensors 文件或 diffusers 文件夹，也可以直接拖到这里。";
    READY_TITLE: "Ready", "准备就绪";
    READY_BODY: "Write a prompt and press Generate.", "写好提示词，然后点击生成。";
    READY_POCKET: "Press Generate: Pocket, the small model inside, makes a portrait of the prompt.", "点击生成，内置小模型 Pocket 会按提示词生成一张人像。";
    DROP_HERE: "Drop a checkpoint, a VAE, or a picture with settings", "松开以打开模型、VAE 或带参数的图片";
    ZOOM_FIT: "Fit", "适应窗口";
    ZOOM_100: "100 %", "100%";
    ZOOM_VALUE: "{share} %", "{share}%";
    CANVAS_HELP: "Wheel zooms, space pans, double-click shows 100 %", "滚轮缩放，按住空格平移，双击显示 100%";
    PREVIEW_OF_STEP: "Preview of step {step}", "第 {step} 步预览";
    FOLLOW: "Follow the running picture", "跟随正在生成的图片";
    STOPPED_AT: "Stopped after {steps}", "停止于 {steps} 之后";

    // Finished pictures.
    FINISHED: "Finished pictures", "已完成的图片";
    FINISHED_NONE: "Pictures appear here.", "完成的图片会出现在这里。";
    SHOT_NAME: "Picture with seed {seed}", "种子 {seed} 的图片";
    SHOT_HOVER: "Seed {seed}, {time}", "种子 {seed}，用时 {time}";
    NOT_SAVED: "Not saved", "未保存";
    SAVE_AS: "Save as…", "另存为…";
    COPY: "Copy picture", "复制图片";
    COPY_SETTINGS: "Copy settings", "复制参数";
    OPEN_FOLDER: "Open folder", "打开文件夹";
    USE_SETTINGS: "Use these settings", "使用这些参数";
    USE_SEED: "Use this seed", "使用此种子";
    REMOVE: "Remove from the strip", "从列表移除";
    NEWER: "Newer picture", "较新的图片";
    OLDER: "Older picture", "较早的图片";
    FOLD: "Fold away", "收起";
    UNFOLD: "Unfold", "展开";
    NO_ROOM: "Needs a larger window", "窗口太小，无法显示";

    // Settings.
    PAUSE_AT: "Pause when the card is this full", "显存用到此比例时暂停";
    MEMORY_BUDGET: "Memory for Softbox at most", "Softbox 最多占用";
    NO_BUDGET: "No ceiling", "不限";
    CLEAN_EVERY: "Clean memory by itself", "自动清理显存";
    CLEAN_EVERY_OFF: "Off", "关闭";
    CLEAN_EVERY_ONE: "After each picture", "每张图片后";
    CLEAN_EVERY_N: "Every {count} pictures", "每 {count} 张图片";
    NOTIFY: "Tell me when pictures are done", "完成时通知我";
    FORGET_HISTORY: "Forget the prompt history", "清空提示词历史";

    // Messages and questions.
    DISMISS: "Dismiss", "关闭";
    DETAILS: "Details", "详细信息";
    COPY_DETAILS: "Copy details", "复制详细信息";
    CLOSE_TITLE: "Close without saving?", "不保存就关闭？";
    CLOSE_BODY: "Not saved yet: {pictures}. They would be lost.", "还有 {pictures}未保存，关闭后会丢失。";
    CLOSE_ANYWAY: "Close anyway", "仍然关闭";
    KEEP_OPEN: "Keep open", "不关闭";
}

/// What a job is doing.
pub fn phase(lang: Lang, phase: Phase) -> String {
    match phase {
        Phase::Loading => PHASE_LOADING.get(lang).to_owned(),
        Phase::Encoding => PHASE_ENCODING.get(lang).to_owned(),
        Phase::Denoising { step, of } => PHASE_STEP.with(lang, &[("step", &step), ("steps", &of)]),
        Phase::Decoding => PHASE_DECODING.get(lang).to_owned(),
        Phase::Saving => PHASE_SAVING.get(lang).to_owned(),
    }
}

/// A choice of device before it is known by name.
pub fn device_choice(lang: Lang, choice: DeviceChoice) -> String {
    match choice {
        DeviceChoice::Auto => AUTOMATIC.get(lang).to_owned(),
        DeviceChoice::Cuda(index) => CUDA_DEVICE.with(lang, &[("index", &index)]),
        DeviceChoice::Vulkan(index) => VULKAN_DEVICE.with(lang, &[("index", &index)]),
        DeviceChoice::Cpu => CPU_DEVICE.get(lang).to_owned(),
    }
}

/// The device in use: its name, and its memory where known.
pub fn device_line(lang: Lang, name: &str, total: Option<crate::base::Bytes>) -> String {
    match total {
        Some(total) => DEVICE_LINE.with(lang, &[("name", &name), ("memory", &total)]),
        None => name.to_owned(),
    }
}

pub fn noise(lang: Lang, noise: NoiseSource) -> &'static str {
    match noise {
        NoiseSource::Gpu => NOISE_GPU.get(lang),
        NoiseSource::Cpu => NOISE_CPU.get(lang),
    }
}

/// What the folded advanced settings say of themselves; nothing where all are at their defaults.
pub fn advanced_differ(lang: Lang, count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some(ADVANCED_ONE_DIFFERS.get(lang).to_owned()),
        n => Some(ADVANCED_DIFFER.with(lang, &[("count", &n)])),
    }
}

/// How often memory is cleaned by itself.
pub fn clean_every(lang: Lang, images: Option<u32>) -> String {
    match images {
        None | Some(0) => CLEAN_EVERY_OFF.get(lang).to_owned(),
        Some(1) => CLEAN_EVERY_ONE.get(lang).to_owned(),
        Some(n) => CLEAN_EVERY_N.with(lang, &[("count", &n)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Bytes;

    #[test]
    fn the_words_artists_know() {
        for (phrase, en, zh) in [
            (GENERATE, "Generate", "生成"),
            (PROMPT, "Prompt", "提示词"),
            (NEGATIVE_PROMPT, "Negative prompt", "反向提示词"),
            (STEPS, "Steps", "步数"),
            (SAMPLER, "Sampler", "采样器"),
            (SCHEDULE, "Schedule", "调度"),
            (SEED, "Seed", "种子"),
            (CHECKPOINT, "Checkpoint", "模型"),
        ] {
            assert_eq!((phrase.get(Lang::En), phrase.get(Lang::Zh)), (en, zh));
        }
    }

    #[test]
    fn phases_and_devices_are_named() {
        assert_eq!(phase(Lang::En, Phase::Denoising { step: 3, of: 25 }), "Step 3 of 25");
        assert_eq!(phase(Lang::Zh, Phase::Loading), "正在加载模型");
        assert_eq!(device_line(Lang::En, "CPU", None), "CPU");
        assert_eq!(device_line(Lang::Zh, "CPU", Some(Bytes::gib(8))), "CPU，共 8.0 GiB");
        assert_eq!(advanced_differ(Lang::En, 0), None);
        assert_eq!(clean_every(Lang::Zh, Some(3)), "每 3 张图片");
    }
}
