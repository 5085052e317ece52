//! The help of the command line. The English stands beside each option in `cli/args.rs`, word for word; `cli` looks up the
//! Chinese here, and its test finds an option without.

use super::{Lang, phrases};

phrases! {
    // The command and its subcommands.
    ABOUT: "A virtual photo studio: Stable Diffusion 1.5 portraits on your own card, with every byte of memory in sight", "虚拟摄影棚：在自己的显卡上用 Stable Diffusion 1.5 生成人像，显存的每一个字节都看得见";
    LONG_ABOUT: "A virtual photo studio: Stable Diffusion 1.5 portraits on your own card, with every byte of memory in sight.\n\nWithout a command the window opens.", "虚拟摄影棚：在自己的显卡上用 Stable Diffusion 1.5 生成人像，显存的每一个字节都看得见。\n\n不带命令时打开窗口。";
    GENERATE: "Make pictures without a window", "不打开窗口，直接生成图片";
    INSPECT: "Say what a checkpoint, a VAE or a picture holds, without loading it", "查看模型、VAE 或图片的内容，不加载它";
    DEVICES: "List the devices, which can be used, and what the others lack", "列出设备，哪些可用，其余的缺少什么";
    MEMORY: "Say what of the device's memory is used, and by whom", "查看设备显存的用量，以及被谁占用";
    BENCH: "Make the same picture several times and say where the time goes", "多次生成同一张图片，并说明时间花在哪里";
    HELP_COMMAND: "Print this message or the help of the given subcommand(s)", "显示此帮助，或某个命令的帮助";

    // Options. Some name Pocket, which may have been left out of the build; then those that end in ALONE are said.
    MODEL_WINDOW_ALONE: "Checkpoint: a .safetensors file, a diffusers folder, or random-sd15", "模型：.safetensors 文件、diffusers 文件夹或 random-sd15";
    MODEL_WINDOW: "Checkpoint: a .safetensors file, a diffusers folder, pocket (the small model inside), or random-sd15", "模型：.safetensors 文件、diffusers 文件夹、pocket（内置小模型）或 random-sd15";
    MODEL_ALONE: "Checkpoint: a .safetensors file, a diffusers folder, or random-sd15 (random weights at full size: noise)", "模型：.safetensors 文件、diffusers 文件夹或 random-sd15（完整大小的随机权重，只生成噪点）";
    MODEL: "Checkpoint: a .safetensors file, a diffusers folder, pocket (the small demonstration model inside), or random-sd15 (random weights at full size: noise)", "模型：.safetensors 文件、diffusers 文件夹、pocket（内置的小型演示模型）或 random-sd15（完整大小的随机权重，只生成噪点）";
    OWN_VAE: "Separate VAE, in place of the checkpoint's own", "单独的 VAE，代替模型自带的";
    OUT_WINDOW: "Folder for finished pictures", "保存图片的文件夹";
    DEVICE: "auto, cuda, cuda:N, vulkan, vulkan:N or cpu", "auto、cuda、cuda:N、vulkan、vulkan:N 或 cpu（设备）";
    DTYPE_WINDOW: "Type of weights and activations", "权重和计算的精度";
    DTYPE: "Type of weights and activations; auto is f16 on a card that has it, else f32", "权重和计算的精度；auto 在支持的显卡上为 f16，否则为 f32";
    BUDGET: "Ceiling for this program's memory, such as 4GiB", "本程序的内存上限，例如 4GiB";
    PAUSE_WINDOW: "Pause when the card is this full, in percent", "显存占用达到此百分比时暂停";
    PAUSE: "Pause when the card is this full, in percent (50 to 98)", "显存占用达到此百分比时暂停（50 到 98）";
    SCRIPT: "Times and figures to use in place of the device's own memory readings, for tests", "用文件中的时间和数值代替真实的显存读数，供测试使用";
    LANG_WINDOW: "Language of the window", "窗口的语言";
    EMA: "Take the checkpoint's averaged (EMA) weights where it has both", "两种权重都有时，使用平均后的（EMA）权重";
    V_PREDICTION: "The checkpoint predicts v, whatever its files say; --v-prediction=false says it does not", "按 v 预测模型处理，不管文件怎么说；--v-prediction=false 表示不是";
    PROMPT: "What to see, with weights such as (soft light:1.2)", "想要的画面，可带权重，例如 (soft light:1.2)";
    NEGATIVE: "What not to see", "不想要的内容";
    STEPS: "Steps from noise to picture, 1 to 1000", "从噪点到图片的步数，1 到 1000";
    HOW_CLOSE: "How closely to follow the prompt, 1 to 30; 1 is without guidance, in half the time", "遵循提示词的程度，1 到 30；1 表示无引导，耗时减半";
    SIZE_ALONE: "Width and height, multiples of 8; without it 512x768", "宽和高，8 的倍数；不指定时为 512x768";
    SIZE: "Width and height, multiples of 8; without it 512x768, or 256x256 with pocket", "宽和高，8 的倍数；不指定时为 512x768，pocket 为 256x256";
    SEED: "Seed of the first picture; -1 draws one", "第一张图片的种子；-1 表示随机";
    RNG: "Family of noise: gpu as A1111's default, cpu as diffusers and ComfyUI", "噪声类型：gpu 同 A1111 默认，cpu 同 diffusers 和 ComfyUI";
    SAMPLER: "How the noise is taken away", "去除噪声的方法（采样器）";
    SCHEDULE: "Which noise levels are visited; without it the sampler's own", "噪声的调度；不指定时由采样器决定";
    LAYER: "Text encoder's layer, counted from the last; 2 for many illustration models", "文本编码器的层，从最后一层数起；许多插画模型用 2";
    COUNT: "How many pictures; each has the next seed", "图片数量；每张使用下一个种子";
    OUT: "A file to write to, or a folder, where no file is ever overwritten", "输出文件，或文件夹（其中的文件绝不会被覆盖）";
    FORMAT: "Format of pictures written to a folder", "写入文件夹的图片格式";
    LATENTS: "Also write the final latents, f32 [n, 4, h, w]", "同时写出最终潜变量，f32，形状为 n × 4 × h × w";
    RUNS: "How many runs after the first, which also loads", "第一次（包含加载）之后再运行几次";
    FILE_ALONE: "A .safetensors file, a diffusers folder, or a picture with its settings inside", ".safetensors 文件、diffusers 文件夹，或带有生成参数的图片";
    FILE: "A .safetensors file, a diffusers folder, a picture with its settings inside, or pocket", ".safetensors 文件、diffusers 文件夹、带有生成参数的图片，或 pocket";
    QUICK: "Only look; do not open each device for a first small product", "只查看，不逐个打开设备做小运算";
    JSON: "One JSON object on standard output", "在标准输出上给出一个 JSON 对象";
    QUIET: "No progress and no notes, only results and errors", "不显示进度和提示，只显示结果和错误";
    LANG: "Language of what is said; without it the system's", "输出的语言；不指定时跟随系统";
    HELP: "Print help", "显示帮助";
    HELP_LONG: "Print help (see more with '--help')", "显示帮助";
    HELP_SHORT: "Print help (see a summary with '-h')", "显示帮助";
    VERSION: "Print version", "显示版本";

    // Around them.
    OPTIONS: "Options", "选项";
    ARGUMENTS: "Arguments", "参数";
    COMMANDS: "Commands", "命令";
    USAGE: "Usage:", "用法:";
    DEFAULT: "{help} [default: {value}]", "{help}（默认 {value}）";
    POSSIBLE: "{help} [possible values: {values}]", "{help}（可选：{values}）";
    EXAMPLES: "Examples:
  softbox                                             open the window
  softbox devices                                     what can calculate here, and what is missing
  softbox generate --model sd15.safetensors --prompt \"portrait\"
  softbox generate --model random-sd15 --steps 20 --json

Exit codes: 0 done, 1 no window can open or a fault of the program, 2 wrong usage, 3 bad input or nowhere to write to,
4 not enough memory, 5 device failed, 130 interrupted.", "示例：
  softbox                                             打开窗口
  softbox devices                                     这里有哪些设备可用，缺少什么
  softbox generate --model sd15.safetensors --prompt \"portrait\"
  softbox generate --model random-sd15 --steps 20 --json

退出码：0 完成，1 无法打开窗口或程序出错，2 用法错误，3 输入有误或无处可写，
4 内存不足，5 设备出错，130 被中断。";
}

/// The words that stand for these English ones; the English where there are none.
pub fn translated(lang: Lang, english: &str) -> &str {
    ALL.iter().find(|phrase| phrase.en == english).map_or(english, |phrase| phrase.get(lang))
}
