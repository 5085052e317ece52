//! Words of the window: buttons, labels, tooltips, the empty canvas.

use super::phrases;

phrases! {
    GENERATE: "Generate", "生成";
    PAUSE: "Pause", "暂停";
    RESUME: "Resume", "继续";
    STOP_AND_KEEP: "Stop and keep", "停止并保留";
    CANCEL: "Cancel", "取消";
    CLEAN_MEMORY: "Clean memory", "清理显存";
    PROMPT: "Prompt", "提示词";
    NEGATIVE_PROMPT: "Negative prompt", "反向提示词";
}
