//! Why a device is not used. The engine says it in English and exactly, with names and versions; Chinese windows say what is
//! known of it in Chinese.

use super::{Lang, phrases};

// The English of each is what tells the reason in the engine's own words; the telling ones come first.
phrases! {
    NO_DRIVER: "no NVIDIA driver", "未找到 NVIDIA 驱动";
    DRIVER_MISMATCH: "differ in version", "NVIDIA 驱动与其运行库版本不一致，更新驱动后请重启电脑";
    DRIVER_TOO_OLD: "is too old", "NVIDIA 驱动过旧，请更新驱动";
    DRIVER_TOO_OLD_FOR_CUDA: "update the driver", "NVIDIA 驱动过旧，请更新驱动";
    NO_CARD: "no NVIDIA card answers", "没有 NVIDIA 显卡响应";
    COMPILER_TOO_NEW: "is newer than the driver", "CUDA 编译器 NVRTC 比驱动新";
    NO_COMPILER: "NVRTC was not found", "未找到 CUDA 编译器 NVRTC";
    NO_HEADERS: "not the CUDA headers", "有 CUDA 编译器 NVRTC，但缺少 CUDA 头文件";
    NO_VULKAN: "no Vulkan", "未安装 Vulkan";
    NO_VULKAN_CARD: "no driver offers a card", "已安装 Vulkan，但没有驱动提供显卡";
    SOFTWARE: "draws on the CPU", "它用处理器模拟显卡，直接使用 CPU 更快";
    NOT_THERE: "is not there", "没有这个设备";
    WRONG_RESULT: "calculates wrongly", "计算结果不正确";
    DID_NOT_START: "did not start", "无法启动";
}

/// The reason in the language where it is a known one; else as the engine said it.
pub fn reason(lang: Lang, why: &str) -> String {
    let known = ALL.iter().find(|phrase| lang == Lang::Zh && why.contains(phrase.en));
    known.map_or_else(|| why.to_owned(), |phrase| phrase.zh.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_reasons_are_said_in_chinese_and_others_stay() {
        for (why, zh) in [
            ("no NVIDIA driver: libcuda.so.1 was not found", "未找到 NVIDIA 驱动"),
            ("the CUDA compiler NVRTC was not found", "未找到 CUDA 编译器 NVRTC"),
            ("NVRTC 13.0 is newer than the driver, which serves CUDA 12.4", "CUDA 编译器 NVRTC 比驱动新"),
            ("it draws on the CPU, where the CPU device is faster", "它用处理器模拟显卡，直接使用 CPU 更快"),
            ("Vulkan is installed, but no driver offers a card", "已安装 Vulkan，但没有驱动提供显卡"),
            ("cuInit failed with CUDA error 999", "cuInit failed with CUDA error 999"),
        ] {
            assert_eq!(reason(Lang::Zh, why), zh);
            assert_eq!(reason(Lang::En, why), why);
        }
    }
}
