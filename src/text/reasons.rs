//! Why a device is not used, a figure not known, a file not read or written, a checkpoint of no use.
//!
//! Parts of sentences: `problems`, `notices` and `cli` set them behind a colon. What a system or a library said itself
//! has no other language, and stands as it is where it tells more than the kind of fault.

use super::problems::part;
use super::{Lang, Phrase, phrases};
use crate::base::{Flaw, Reason};
use std::io::ErrorKind;
use std::path::Path;

phrases! {
    // Devices.
    NO_DRIVER: "no NVIDIA driver: {library} was not found", "未找到 NVIDIA 驱动（{library}）";
    DRIVER_LACKS: "the NVIDIA driver lacks {name}; it is too old", "NVIDIA 驱动过旧，缺少 {name}，请更新驱动";
    DRIVER_MISMATCH: "the NVIDIA driver and its library differ in version; a restart after a driver update helps", "NVIDIA 驱动与其运行库版本不一致，更新驱动后请重启电脑";
    DRIVER_TOO_OLD: "the NVIDIA driver serves CUDA {serves}, and {needs} or newer is needed; update the driver", "NVIDIA 驱动只支持 CUDA {serves}，需要 {needs} 或更高，请更新驱动";
    NO_CARD: "no NVIDIA card answers", "没有 NVIDIA 显卡响应";
    DRIVER_CALL: "{call} failed with CUDA error {code}", "NVIDIA 驱动调用 {call} 失败，CUDA 错误码 {code}";
    NO_COMPILER: "the CUDA compiler NVRTC was not found", "未找到 CUDA 编译器 NVRTC";
    COMPILER_TOO_NEW: "NVRTC {compiler} is newer than the driver, which serves CUDA {serves}", "CUDA 编译器 NVRTC {compiler} 比驱动新，驱动只支持 CUDA {serves}";
    NO_HEADERS: "NVRTC {compiler} is there, but not the CUDA headers {missing}", "有 CUDA 编译器 NVRTC {compiler}，但缺少 CUDA 头文件 {missing}";
    NO_VULKAN: "no Vulkan: {library} was not found", "未安装 Vulkan（{library}）";
    NO_VULKAN_CARD: "Vulkan is installed, but no driver offers a card", "已安装 Vulkan，但没有驱动提供显卡";
    UNKNOWN_ADAPTER: "an adapter of unknown kind", "未知类型的显卡";
    SOFTWARE: "it draws on the CPU, where the CPU device is faster", "它用处理器模拟显卡，直接使用 CPU 更快";
    NOT_THERE: "there is no such device", "没有这个设备";
    WRONG_RESULT: "it calculates wrongly: {what} gave {got}, not {want}", "计算结果不正确：{what}得到 {got}，应为 {want}";
    MATRIX_PRODUCT: "a matrix product", "矩阵乘法";
    CONVOLUTION: "a convolution", "卷积";
    DID_NOT_START: "it did not start: {told}", "无法启动：{told}";
    NO_READING: "no memory reading came", "没有读到显存数据";

    // Figures of the memory.
    NO_DEVICE: "no device is open", "没有打开任何设备";
    NO_NVML: "NVIDIA's management library NVML was not found", "未找到 NVIDIA 管理库 NVML";
    NVML: "NVIDIA's management library NVML says: {told}", "NVIDIA 管理库 NVML 报告：{told}";
    NO_SUCH_NVML_CARD: "NVIDIA's management library NVML does not know this card", "NVIDIA 管理库 NVML 不认识这张显卡";
    NO_AMDGPU_CARD: "the amdgpu driver does not know this card", "amdgpu 驱动不认识这张显卡";
    PROGRAMS_UNREAD: "the programs on the card cannot be read: {told}", "无法读取显卡上的程序列表：{told}";
    NOT_BY_PROGRAM: "this driver does not count by program", "此驱动不按程序统计显存";
    OTHER_PROCESS_NUMBERS: "process numbers differ in this container", "容器内的进程编号与驱动所见不同";
    NOT_LISTED: "the driver does not list this program", "驱动没有列出本程序";
    NO_MEMORY_FIGURES: "the system does not tell its memory", "系统没有提供内存数据";
    SCRIPTED: "the gauge script says so", "读数脚本如此规定";

    // Files.
    DISK_FULL: "the disk of {path} is full", "{path} 所在的磁盘已满";
    READ_ONLY: "{path} cannot be written to", "{path} 不可写入";
    NOT_A_FOLDER: "{path} is a file, not a folder", "{path} 是文件，不是文件夹";
    NOT_A_FILE: "{path} is there already and is no file", "{path} 已存在，且不是文件";
    OTHER_KIND: "{path} is another kind of file and is not replaced", "{path} 是其他类型的文件，不会被覆盖";
    NOT_A_NUMBER: "{path} holds no number", "{path} 的内容不是数字";
    UNREADABLE: "{path} cannot be read", "{path} 无法读取";
    NOT_A_PICTURE: "it is no PNG, JPEG or WebP picture", "不是 PNG、JPEG 或 WebP 图片";
    PICTURE_DAMAGED: "the picture is damaged ({told})", "图片已损坏（{told}）";
    NOT_ENCODED: "the picture could not be encoded ({told})", "图片编码失败（{told}）";
    OF_PATH: "{path}: {why}", "{path}：{why}";

    // What the system says about a file.
    IO_NOT_FOUND: "there is no such file or folder", "文件或文件夹不存在";
    IO_DENIED: "permission is denied", "没有权限";
    IO_EXISTS: "it is there already", "已存在";
    IO_FULL: "the disk is full", "磁盘已满";
    IO_QUOTA: "the quota is used up", "磁盘配额已用完";
    IO_READ_ONLY: "the disk is read-only", "磁盘是只读的";
    IO_NO_FOLDER: "a part of the path is no folder", "路径中有一部分不是文件夹";
    IO_FOLDER: "it is a folder", "这是一个文件夹";
    IO_NOT_EMPTY: "the folder is not empty", "文件夹不为空";
    IO_NAME: "the name is not allowed or too long", "名称不合法或过长";
    IO_TOO_LARGE: "the file is too large", "文件过大";
    IO_BUSY: "it is in use by another program", "正被其他程序使用";
    IO_SHORT: "it ends too early", "文件不完整，提前结束";
    IO_DATA: "its content is not valid", "内容无效";
    IO_TIMED_OUT: "it does not answer in time", "响应超时";
    IO_MEMORY: "there is not enough memory", "内存不足";
    IO_UNSUPPORTED: "the system does not support this", "系统不支持此操作";
    IO_GONE: "the connection to it is lost", "连接已断开";
    IO_LOOP: "its links lead in a circle", "链接形成了循环";
    IO_OTHER: "the system says: {told}", "系统报告：{told}";

    // Checkpoints.
    TOO_SHORT: "it has only {have} bytes", "文件只有 {have} 字节";
    HEADER_TOO_LARGE: "its header would be {length} bytes long", "文件头长度异常（{length} 字节）";
    HEADER_NO_TEXT: "its header is not valid text", "文件头不是有效文本";
    HEADER_NO_JSON: "its header is not valid JSON ({told})", "文件头不是有效的 JSON（{told}）";
    ENTRY: "the entry of tensor {tensor} does not hold ({told})", "张量 {tensor} 的条目有误（{told}）";
    DUPLICATE: "tensor {tensor} is listed twice", "张量 {tensor} 重复列出";
    OFFSETS: "tensor {tensor} needs {need} bytes, its offsets hold {have}", "张量 {tensor} 需要 {need} 字节，偏移范围却为 {have} 字节";
    OVERFLOW: "the size of tensor {tensor} overflows", "张量 {tensor} 的大小溢出";
    OVERLAP: "tensor {tensor} overlaps {other}", "张量 {tensor} 与 {other} 重叠";
    GAP: "{bytes} bytes before tensor {tensor} belong to no tensor", "张量 {tensor} 之前有 {bytes} 字节不属于任何张量";
    EXTRA_BYTES: "{bytes} extra bytes follow the last tensor", "最后一个张量之后多出 {bytes} 字节";
    NO_TENSOR: "there is no tensor {tensor}", "缺少张量 {tensor}";
    NO_WEIGHTS: "tensor {tensor} is {dtype}, which holds no weights", "张量 {tensor} 的类型 {dtype} 不是权重";
    SHAPE: "tensor {tensor} has shape {found}, expected {expected}", "张量 {tensor} 的形状为 {found}，应为 {expected}";
    ONE_MISSING_TENSOR: "the {part} lacks the tensor {first}", "{part}缺少张量 {first}";
    MISSING_TENSORS: "the {part} lacks {count} tensors, the first is {first}", "{part}缺少 {count} 个张量，第一个是 {first}";
    MISSING_PART: "there is no {part}", "缺少{part}";
    LEFT_OUT: "it was left out when this program was built", "编译本程序时未包含它";
    MISSING_SHARD: "it lists {shard}, which is not there", "它列出的 {shard} 不存在";
    SETTING: "the setting {field} does not hold ({told})", "配置项 {field} 有误（{told}）";
    SETTING_UNSUPPORTED: "{field} = {value} is not supported", "不支持 {field} = {value}";
    UNSUPPORTED: "the {part} asks for what is not supported ({told})", "{part}需要尚不支持的功能（{told}）";
    TOKENIZER: "the tokenizer cannot be used ({told})", "分词器无法使用（{told}）";
    BETAS: "the noise schedule does not hold ({told})", "噪声调度有误（{told}）";
    SCRIPT_LINE: "line {line}: {told}", "第 {line} 行：{told}";
}

/// The reason, to be set into a sentence: no capital, no stop.
pub fn reason(lang: Lang, why: &Reason) -> String {
    let fixed = match why {
        Reason::NoDriver { library } => return NO_DRIVER.with(lang, &[("library", library)]),
        Reason::DriverLacks(name) => return DRIVER_LACKS.with(lang, &[("name", name)]),
        Reason::DriverTooOld { serves, needs } => {
            return DRIVER_TOO_OLD.with(lang, &[("serves", serves), ("needs", needs)]);
        }
        Reason::DriverCall { call, code } => return DRIVER_CALL.with(lang, &[("call", call), ("code", code)]),
        Reason::CompilerTooNew { compiler, serves } => {
            return COMPILER_TOO_NEW.with(lang, &[("compiler", compiler), ("serves", serves)]);
        }
        Reason::NoHeaders { compiler, missing } => {
            return NO_HEADERS.with(lang, &[("compiler", compiler), ("missing", missing)]);
        }
        Reason::NoVulkan { library } => return NO_VULKAN.with(lang, &[("library", library)]),
        Reason::WrongResult { what, got, want } => {
            let known = [MATRIX_PRODUCT, CONVOLUTION].into_iter().find(|phrase| phrase.en == *what);
            let what = known.map_or(*what, |phrase| phrase.get(lang));
            return WRONG_RESULT.with(lang, &[("what", &what), ("got", got), ("want", want)]);
        }
        Reason::DidNotStart(told) => return told_in(lang, DID_NOT_START, told),
        Reason::Nvml(told) => return told_in(lang, NVML, told),
        Reason::ProgramsUnread(told) => return told_in(lang, PROGRAMS_UNREAD, told),
        Reason::Io { path, kind, told } if path.as_os_str().is_empty() => return io(lang, *kind, told),
        Reason::Io { path, kind, told } => {
            return OF_PATH.with(lang, &[("path", &path.display()), ("why", &io(lang, *kind, told))]);
        }
        Reason::DiskFull(path) => return of_path(lang, DISK_FULL, path),
        Reason::ReadOnly(path) => return of_path(lang, READ_ONLY, path),
        Reason::NotAFolder(path) => return of_path(lang, NOT_A_FOLDER, path),
        Reason::NotAFile(path) => return of_path(lang, NOT_A_FILE, path),
        Reason::OtherKind(path) => return of_path(lang, OTHER_KIND, path),
        Reason::NotANumber(path) => return of_path(lang, NOT_A_NUMBER, path),
        Reason::Unreadable(path) => return of_path(lang, UNREADABLE, path),
        Reason::PictureDamaged(told) => return told_in(lang, PICTURE_DAMAGED, told),
        Reason::NotEncoded(told) => return told_in(lang, NOT_ENCODED, told),
        Reason::DriverMismatch => DRIVER_MISMATCH,
        Reason::NoCard => NO_CARD,
        Reason::NoCompiler => NO_COMPILER,
        Reason::NoVulkanCard => NO_VULKAN_CARD,
        Reason::UnknownAdapter => UNKNOWN_ADAPTER,
        Reason::Software => SOFTWARE,
        Reason::NotThere => NOT_THERE,
        Reason::NoReading => NO_READING,
        Reason::NoDevice => NO_DEVICE,
        Reason::NoNvml(_) => NO_NVML,
        Reason::NoSuchNvmlCard => NO_SUCH_NVML_CARD,
        Reason::NoAmdgpuCard => NO_AMDGPU_CARD,
        Reason::NotByProgram => NOT_BY_PROGRAM,
        Reason::OtherProcessNumbers => OTHER_PROCESS_NUMBERS,
        Reason::NotListed => NOT_LISTED,
        Reason::NoMemoryFigures => NO_MEMORY_FIGURES,
        Reason::Scripted => SCRIPTED,
        Reason::NotAPicture => NOT_A_PICTURE,
    };
    fixed.get(lang).to_owned()
}

/// What the system says about a file, by its kind; in the system's own words where the kind is none of those known.
pub fn io(lang: Lang, kind: ErrorKind, told: &str) -> String {
    let known = match kind {
        ErrorKind::NotFound => IO_NOT_FOUND,
        ErrorKind::PermissionDenied => IO_DENIED,
        ErrorKind::AlreadyExists => IO_EXISTS,
        ErrorKind::StorageFull => IO_FULL,
        ErrorKind::QuotaExceeded => IO_QUOTA,
        ErrorKind::ReadOnlyFilesystem => IO_READ_ONLY,
        ErrorKind::NotADirectory => IO_NO_FOLDER,
        ErrorKind::IsADirectory => IO_FOLDER,
        ErrorKind::DirectoryNotEmpty => IO_NOT_EMPTY,
        ErrorKind::InvalidFilename => IO_NAME,
        ErrorKind::FileTooLarge => IO_TOO_LARGE,
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy | ErrorKind::WouldBlock => IO_BUSY,
        ErrorKind::UnexpectedEof | ErrorKind::WriteZero => IO_SHORT,
        ErrorKind::InvalidData => IO_DATA,
        ErrorKind::TimedOut => IO_TIMED_OUT,
        ErrorKind::OutOfMemory => IO_MEMORY,
        ErrorKind::Unsupported => IO_UNSUPPORTED,
        ErrorKind::StaleNetworkFileHandle
        | ErrorKind::NotConnected
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::BrokenPipe => IO_GONE,
        // The kind for links in a circle has no stable name yet: ELOOP is 40 on Linux.
        _ if told.contains("(os error 40)") => IO_LOOP,
        _ => return told_in(lang, IO_OTHER, told),
    };
    known.get(lang).to_owned()
}

/// What is wrong with a checkpoint, to be set behind its name.
pub fn flaw(lang: Lang, what: &Flaw) -> String {
    match what {
        Flaw::TooShort { have } => TOO_SHORT.with(lang, &[("have", have)]),
        Flaw::HeaderTooLarge { length } => HEADER_TOO_LARGE.with(lang, &[("length", length)]),
        Flaw::HeaderNoText => HEADER_NO_TEXT.get(lang).to_owned(),
        Flaw::HeaderNoJson(told) => told_in(lang, HEADER_NO_JSON, told),
        Flaw::Entry { tensor, told } => ENTRY.with(lang, &[("tensor", tensor), ("told", told)]),
        Flaw::Duplicate { tensor } => DUPLICATE.with(lang, &[("tensor", tensor)]),
        Flaw::Offsets { tensor, need, have } => {
            OFFSETS.with(lang, &[("tensor", tensor), ("need", need), ("have", have)])
        }
        Flaw::Overflow { tensor } => OVERFLOW.with(lang, &[("tensor", tensor)]),
        Flaw::Overlap { tensor, other } => OVERLAP.with(lang, &[("tensor", tensor), ("other", other)]),
        Flaw::Gap { tensor, bytes } => GAP.with(lang, &[("tensor", tensor), ("bytes", bytes)]),
        Flaw::ExtraBytes { bytes } => EXTRA_BYTES.with(lang, &[("bytes", bytes)]),
        Flaw::NoTensor { tensor } => NO_TENSOR.with(lang, &[("tensor", tensor)]),
        Flaw::NoWeights { tensor, dtype } => NO_WEIGHTS.with(lang, &[("tensor", tensor), ("dtype", dtype)]),
        Flaw::Shape { tensor, found, expected } => {
            SHAPE.with(lang, &[("tensor", tensor), ("found", found), ("expected", expected)])
        }
        Flaw::MissingTensors { part: name, count: 1, first } => {
            ONE_MISSING_TENSOR.with(lang, &[("part", &joined(lang, name)), ("first", first)])
        }
        Flaw::MissingTensors { part: name, count, first } => {
            MISSING_TENSORS.with(lang, &[("part", &joined(lang, name)), ("count", count), ("first", first)])
        }
        Flaw::MissingPart { part: name } => MISSING_PART.with(lang, &[("part", &before(lang, name))]),
        Flaw::MissingShard { shard } => MISSING_SHARD.with(lang, &[("shard", &shard.display())]),
        Flaw::Setting { field, told } => SETTING.with(lang, &[("field", field), ("told", told)]),
        Flaw::SettingUnsupported { field, value } => {
            SETTING_UNSUPPORTED.with(lang, &[("field", field), ("value", value)])
        }
        Flaw::Unsupported { part: name, told } => {
            UNSUPPORTED.with(lang, &[("part", &joined(lang, name)), ("told", told)])
        }
        Flaw::Tokenizer(told) => told_in(lang, TOKENIZER, told),
        Flaw::Betas(told) => told_in(lang, BETAS, told),
        Flaw::LeftOut => LEFT_OUT.get(lang).to_owned(),
        Flaw::ScriptLine { line, told } => SCRIPT_LINE.with(lang, &[("line", line), ("told", told)]),
    }
}

/// A part's name with words after it: Chinese sets a space between Latin letters and Han characters.
fn joined(lang: Lang, name: &str) -> String {
    let name = part(lang, name);
    let latin = lang == Lang::Zh && name.ends_with(|c: char| c.is_ascii());
    if latin { format!("{name} ") } else { name.to_owned() }
}

/// The same with words before it.
fn before(lang: Lang, name: &str) -> String {
    let name = part(lang, name);
    let latin = lang == Lang::Zh && name.starts_with(|c: char| c.is_ascii());
    if latin { format!(" {name}") } else { name.to_owned() }
}

fn told_in(lang: Lang, phrase: Phrase, told: &str) -> String {
    phrase.with(lang, &[("told", &told)])
}

fn of_path(lang: Lang, phrase: Phrase, path: &Path) -> String {
    phrase.with(lang, &[("path", &path.display())])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::io;

    /// One of each kind.
    pub(crate) fn every_reason() -> Vec<Reason> {
        let (told, path) = (|| "x".to_owned(), || Path::new("/p/a.png").to_owned());
        vec![
            Reason::NoDriver { library: "libcuda.so.1" },
            Reason::DriverLacks("cuInit"),
            Reason::DriverMismatch,
            Reason::DriverTooOld { serves: "11.0".into(), needs: "12.0".into() },
            Reason::NoCard,
            Reason::DriverCall { call: "cuInit", code: 999 },
            Reason::NoCompiler,
            Reason::CompilerTooNew { compiler: "13.0".into(), serves: "12.4".into() },
            Reason::NoHeaders { compiler: "12.4".into(), missing: "cuda_fp16.h".into() },
            Reason::NoVulkan { library: "libvulkan.so.1" },
            Reason::NoVulkanCard,
            Reason::UnknownAdapter,
            Reason::Software,
            Reason::NotThere,
            Reason::WrongResult { what: "a matrix product", got: 1.0, want: 2.0 },
            Reason::DidNotStart(told()),
            Reason::NoReading,
            Reason::NoDevice,
            Reason::NoNvml(told()),
            Reason::Nvml(told()),
            Reason::NoSuchNvmlCard,
            Reason::NoAmdgpuCard,
            Reason::ProgramsUnread(told()),
            Reason::NotByProgram,
            Reason::OtherProcessNumbers,
            Reason::NotListed,
            Reason::NoMemoryFigures,
            Reason::Scripted,
            Reason::io(&path(), &io::Error::from(ErrorKind::NotFound)),
            Reason::DiskFull(path()),
            Reason::ReadOnly(path()),
            Reason::NotAFolder(path()),
            Reason::NotAFile(path()),
            Reason::OtherKind(path()),
            Reason::NotANumber(path()),
            Reason::Unreadable(path()),
            Reason::NotAPicture,
            Reason::PictureDamaged(told()),
            Reason::NotEncoded(told()),
        ]
    }

    /// One of each kind.
    pub(crate) fn every_flaw() -> Vec<Flaw> {
        let text = || "x".to_owned();
        vec![
            Flaw::TooShort { have: 3 },
            Flaw::HeaderTooLarge { length: 9 },
            Flaw::HeaderNoText,
            Flaw::HeaderNoJson(text()),
            Flaw::Entry { tensor: text(), told: text() },
            Flaw::Duplicate { tensor: text() },
            Flaw::Offsets { tensor: text(), need: 2, have: 1 },
            Flaw::Overflow { tensor: text() },
            Flaw::Overlap { tensor: text(), other: text() },
            Flaw::Gap { tensor: text(), bytes: 4 },
            Flaw::ExtraBytes { bytes: 4 },
            Flaw::NoTensor { tensor: text() },
            Flaw::NoWeights { tensor: text(), dtype: "I64".into() },
            Flaw::Shape { tensor: text(), found: "[1]".into(), expected: "[2]".into() },
            Flaw::MissingTensors { part: "UNet".into(), count: 1, first: text() },
            Flaw::MissingTensors { part: "text encoder".into(), count: 2, first: text() },
            Flaw::MissingPart { part: "VAE decoder".into() },
            Flaw::MissingShard { shard: "b.safetensors".into() },
            Flaw::Setting { field: text(), told: text() },
            Flaw::SettingUnsupported { field: text(), value: text() },
            Flaw::Unsupported { part: "UNet".into(), told: text() },
            Flaw::Tokenizer(text()),
            Flaw::Betas(text()),
            Flaw::LeftOut,
            Flaw::ScriptLine { line: 2, told: text() },
        ]
    }

    fn has_han(text: &str) -> bool {
        text.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c))
    }

    /// Each in both languages, in words of its own.
    fn differ(say: impl Fn(Lang) -> Vec<String>) {
        for lang in Lang::ALL {
            let said = say(lang);
            assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len());
            for text in &said {
                assert_eq!(has_han(text), lang == Lang::Zh, "{text}");
                assert!(!text.contains(['{', '}']) && !text.ends_with(['.', '。']), "{text}");
            }
        }
    }

    #[test]
    fn every_reason_is_said_in_both_languages() {
        differ(|lang| every_reason().iter().map(|why| reason(lang, why)).collect());
        let full = Reason::DiskFull("/p".into());
        assert_eq!(reason(Lang::En, &full), "the disk of /p is full");
        let lost = Reason::io(Path::new("/q"), &io::Error::from(ErrorKind::NotFound));
        assert_eq!(reason(Lang::Zh, &lost), "/q：文件或文件夹不存在");
        let wrong = Reason::WrongResult { what: "a convolution", got: 1.0, want: 2.0 };
        assert_eq!(reason(Lang::Zh, &wrong), "计算结果不正确：卷积得到 1，应为 2");
    }

    #[test]
    fn every_flaw_is_said_in_both_languages() {
        differ(|lang| every_flaw().iter().map(|what| flaw(lang, what)).collect());
        let lacks = Flaw::MissingTensors { part: "UNet".into(), count: 2, first: "a.b".into() };
        assert_eq!(flaw(Lang::Zh, &lacks), "UNet 缺少 2 个张量，第一个是 a.b");
        assert_eq!(flaw(Lang::Zh, &Flaw::MissingPart { part: "text encoder".into() }), "缺少文本编码器");
        assert_eq!(flaw(Lang::Zh, &Flaw::MissingPart { part: "UNet".into() }), "缺少 UNet");
    }

    #[test]
    fn what_the_system_says_of_files_has_words() {
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::PermissionDenied,
            ErrorKind::AlreadyExists,
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::NotADirectory,
            ErrorKind::IsADirectory,
            ErrorKind::DirectoryNotEmpty,
            ErrorKind::InvalidFilename,
            ErrorKind::FileTooLarge,
            ErrorKind::ResourceBusy,
            ErrorKind::UnexpectedEof,
            ErrorKind::InvalidData,
            ErrorKind::TimedOut,
            ErrorKind::OutOfMemory,
            ErrorKind::Unsupported,
            ErrorKind::StaleNetworkFileHandle,
            ErrorKind::Other,
        ] {
            let told = io::Error::from(kind).to_string();
            assert!(has_han(&io(Lang::Zh, kind, &told)), "{kind:?}");
            // The system's own words stand there only where no kind says it.
            assert_eq!(io(Lang::Zh, kind, "EIEIO").contains("EIEIO"), kind == ErrorKind::Other, "{kind:?}");
        }
        #[cfg(target_os = "linux")]
        for number in [2, 5, 13, 17, 20, 21, 27, 28, 30, 36, 40, 110, 116] {
            let error = io::Error::from_raw_os_error(number);
            let said = io(Lang::Zh, error.kind(), &error.to_string());
            assert!(has_han(&said) && (number == 5 || !said.contains("os error")), "{number}: {said}");
        }
    }
}
