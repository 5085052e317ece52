//! Words of the memory gauge: its parts, forecasts, pauses, clean-ups.

use super::figures::{pair, percent};
use super::{Lang, phrases};
use crate::base::{Bytes, CleanReport, MemoryReading, Size};

phrases! {
    CLEAN_MEMORY: "Clean memory", "清理显存";
    CLEAN_AMOUNT: "Clean {amount}", "清理 {amount}";
    CLEAN_HELP: "Drops what is not needed and gives pooled memory back to the card.", "丢弃不需要的内容，并把缓存池归还给显卡。";
    CLEANING: "Cleaning…", "正在清理…";
    CLEANING_AT_STEP: "Cleaning after this step…", "本步结束后清理…";
    GAUGE: "Memory gauge", "显存仪表";

    // Parts.
    IN_USE: "In use", "使用中";
    POOLED: "Kept in our pool", "缓存池";
    CONTEXT: "Driver context", "驱动上下文";
    OTHERS: "Other programs", "其他程序";
    RESERVED: "Reserved by the driver", "驱动保留";
    FREE: "Free", "空闲";
    TOTAL: "Total", "总量";
    LIMIT: "Limit", "上限";
    PEAK: "Peak of this job", "本次任务峰值";
    UNKNOWN: "Unknown", "未知";
    NO_READING: "No reading yet", "尚无读数";
    OF_TOTAL: "{used} / {total}", "{used} / {total}";
    SHARE_USED: "{share} % in use", "已用 {share}%";
    SHARE_ACTIVE: "{share} % active", "活跃 {share}%";
    LIMIT_LINE: "Limit {share} %", "上限 {share}%";
    SECONDS_AGO: "{time} ago", "{time}前";
    NOW: "Now", "现在";

    // Stages and marks.
    STAGE_LOADING: "Loading", "加载";
    STAGE_ENCODING: "Encoding", "编码";
    STAGE_DENOISING: "Denoising", "去噪";
    STAGE_DECODING: "Decoding", "解码";
    STAGE_SAVING: "Saving", "保存";
    STAGE_PAUSED: "Paused", "已暂停";
    MARK_PAUSED: "Paused by you", "手动暂停";
    MARK_PAUSED_MEMORY: "Paused for memory", "因显存暂停";
    MARK_RESUMED: "Resumed", "已继续";
    MARK_CLEANED: "Cleaned", "已清理";

    // Forecasts.
    FITS: "Fits: peak {peak} of {total}", "放得下：峰值 {peak} / {total}";
    FITS_TILED: "Fits with tiled decoding", "分块解码后放得下";
    FORECAST_LINE: "Forecast {peak}", "预计 {peak}";
    DOES_NOT_FIT: "Does not fit.", "放不下。";
    DOES_NOT_FIT_LARGEST: "Does not fit. Largest that fits: {width}×{height}", "放不下。最大可用尺寸：{width}×{height}";

    // Pauses.
    PAUSED: "Paused", "已暂停";
    PAUSED_AT_STEP: "Paused at step {step}.", "已在第 {step} 步暂停。";
    PAUSED_LOW: "Paused at step {step}: the card is {used} % full.", "已在第 {step} 步暂停：显存已用 {used}%。";
    PAUSED_LOW_EARLY: "Paused before the first step: the card is {used} % full.", "已在第一步之前暂停：显存已用 {used}%。";
    PAUSED_NEED: "Paused at step {step}: what comes next does not fit into the free memory.", "已在第 {step} 步暂停：空闲显存放不下下一阶段。";
    PAUSED_NEED_EARLY: "Paused before the first step: what comes next does not fit into the free memory.", "已在第一步之前暂停：空闲显存放不下下一阶段。";
    OTHER_HOLDS: "Another program holds {others}.", "另一程序占用 {others}。";
    GOES_ON: "It goes on by itself when use falls well below {limit} %.", "用量明显低于 {limit}% 后会自动继续。";
    GOES_ON_WITH_ROOM: "It goes on by itself when there is room.", "空间足够后会自动继续。";
    LATENT_STAYS: "The weights left the card; the picture so far is kept.", "权重已移出显存，当前画面已保留。";

    // Clean-ups.
    FREED: "Freed {freed}.", "已释放 {freed}。";
    FREED_NOTHING: "There was nothing to free.", "没有可释放的显存。";
    FREED_UNKNOWN: "Cleaned. How much came back is unknown.", "已清理，释放量未知。";
    STAYS: "{kept} stays in use by the model.", "模型仍占用 {kept}。";
    CONTEXT_STAYS: "{kept} is the driver's own, and goes with the program.", "驱动自身占用 {kept}，退出程序后才会释放。";
    BEFORE_AFTER: "In use before: {before}, after: {after}", "清理前 {before}，清理后 {after}";
}

/// What a report calls the part that is the driver's own.
const DRIVERS_PART: &str = "context";

/// "Fits: peak 3.1 of 8.0 GiB": the unit once where both share it.
pub fn fits(lang: Lang, peak: Bytes, total: Bytes) -> String {
    FITS.with(lang, &[("peak", &sharing_unit(peak, total)), ("total", &total)])
}

/// "Does not fit. Largest that fits: 832×1216", or only that it does not.
pub fn does_not_fit(lang: Lang, largest: Option<Size>) -> String {
    match largest {
        Some(size) => DOES_NOT_FIT_LARGEST.with(lang, &[("width", &size.width()), ("height", &size.height())]),
        None => DOES_NOT_FIT.get(lang).to_owned(),
    }
}

/// "5.1 / 8.0 GiB", or with "unknown" in place of what is not known.
pub fn of_total(lang: Lang, used: Option<Bytes>, total: Option<Bytes>) -> String {
    let used = match (used, total) {
        (Some(used), Some(total)) => sharing_unit(used, total),
        (used, _) => amount(lang, used),
    };
    OF_TOTAL.with(lang, &[("used", &used), ("total", &amount(lang, total))])
}

/// An amount, or that it is unknown: never a zero in its place.
pub fn amount(lang: Lang, bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| UNKNOWN.get(lang).to_owned(), |bytes| bytes.to_string())
}

/// Why a job waits for the person.
pub fn paused_by_hand(lang: Lang, step: Option<u32>) -> String {
    match step {
        Some(step) => PAUSED_AT_STEP.with(lang, &[("step", &step)]),
        None => PAUSED.get(lang).to_owned(),
    }
}

/// Why a job waits for memory: the card's use and the limit as shares of 1, and what other programs hold, where that is
/// known. Below the limit it waits for what the next phase needs.
pub fn paused_low_memory(lang: Lang, step: u32, used: f64, limit: f64, others: Option<Bytes>) -> String {
    let share = percent(used);
    let mut said = match (used < limit, step) {
        (false, 0) => PAUSED_LOW_EARLY.with(lang, &[("used", &share)]),
        (false, _) => PAUSED_LOW.with(lang, &[("step", &step), ("used", &share)]),
        (true, 0) => PAUSED_NEED_EARLY.get(lang).to_owned(),
        (true, _) => PAUSED_NEED.with(lang, &[("step", &step)]),
    };
    if let Some(others) = others.filter(|others| *others > Bytes::ZERO) {
        append(lang, &mut said, &OTHER_HOLDS.with(lang, &[("others", &others)]));
    }
    said
}

/// What ends such a pause by itself.
pub fn goes_on(lang: Lang, used: f64, limit: f64) -> String {
    if used < limit {
        return GOES_ON_WITH_ROOM.get(lang).to_owned();
    }
    GOES_ON.with(lang, &[("limit", &percent(limit))])
}

/// "Freed 1.4 GiB. 2.1 GiB stays in use by the model."
pub fn clean_report(lang: Lang, report: &CleanReport) -> String {
    let mut said = match report.freed {
        None => FREED_UNKNOWN.get(lang).to_owned(),
        Some(Bytes::ZERO) => FREED_NOTHING.get(lang).to_owned(),
        Some(freed) => FREED.with(lang, &[("freed", &freed)]),
    };
    let held = |context: bool| -> Bytes {
        report.kept.iter().filter(|(part, _)| (part == DRIVERS_PART) == context).map(|(_, size)| *size).sum()
    };
    for (kept, phrase) in [(held(false), STAYS), (held(true), CONTEXT_STAYS)] {
        if kept > Bytes::ZERO {
            append(lang, &mut said, &phrase.with(lang, &[("kept", &kept)]));
        }
    }
    said
}

/// The details of a clean-up, a line each: before and after, then what stays.
pub fn clean_details(lang: Lang, report: &CleanReport) -> Vec<String> {
    let used = |reading: &MemoryReading| amount(lang, reading.used());
    let before_after = BEFORE_AFTER.with(lang, &[("before", &used(&report.before)), ("after", &used(&report.after))]);
    let kept = report.kept.iter().map(|(part, size)| {
        let part = if part == DRIVERS_PART { CONTEXT.get(lang) } else { part };
        pair(lang, part, size)
    });
    std::iter::once(before_after).chain(kept).collect()
}

/// The button's words: how much it would give back, where that is known and worth saying.
pub fn clean_button(lang: Lang, pooled: Option<Bytes>) -> String {
    match pooled.filter(|pooled| *pooled >= Bytes::mib(1)) {
        Some(pooled) => CLEAN_AMOUNT.with(lang, &[("amount", &pooled)]),
        None => CLEAN_MEMORY.get(lang).to_owned(),
    }
}

/// Adds a sentence: with a space between in English, without in Chinese.
fn append(lang: Lang, said: &mut String, sentence: &str) {
    if lang == Lang::En {
        said.push(' ');
    }
    said.push_str(sentence);
}

/// `part` as text, without its unit where `whole` has the same.
fn sharing_unit(part: Bytes, whole: Bytes) -> String {
    let (part, whole) = (part.to_string(), whole.to_string());
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number.to_owned(),
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(n: f64) -> Bytes {
        Bytes((n * (1u64 << 30) as f64) as u64)
    }

    #[test]
    fn forecasts_say_peak_and_total_with_one_unit() {
        assert_eq!(fits(Lang::En, gib(3.1), gib(8.0)), "Fits: peak 3.1 of 8.0 GiB");
        assert_eq!(fits(Lang::Zh, gib(3.1), gib(8.0)), "放得下：峰值 3.1 / 8.0 GiB");
        assert_eq!(fits(Lang::En, gib(0.5), gib(8.0)), "Fits: peak 512 MiB of 8.0 GiB");
        let size = Size::nearest(832, 1216);
        assert_eq!(does_not_fit(Lang::En, Some(size)), "Does not fit. Largest that fits: 832×1216");
        assert_eq!(does_not_fit(Lang::Zh, Some(size)), "放不下。最大可用尺寸：832×1216");
        assert_eq!(does_not_fit(Lang::En, None), "Does not fit.");
        assert_eq!(FITS_TILED.get(Lang::Zh), "分块解码后放得下");
    }

    #[test]
    fn pauses_say_why_in_figures() {
        assert_eq!(
            paused_low_memory(Lang::En, 12, 0.93, 0.9, Some(gib(5.1))),
            "Paused at step 12: the card is 93 % full. Another program holds 5.1 GiB."
        );
        assert_eq!(
            paused_low_memory(Lang::Zh, 12, 0.93, 0.9, Some(gib(5.1))),
            "已在第 12 步暂停：显存已用 93%。另一程序占用 5.1 GiB。"
        );
        assert_eq!(
            paused_low_memory(Lang::En, 0, 0.91, 0.9, None),
            "Paused before the first step: the card is 91 % full."
        );
        assert!(!paused_low_memory(Lang::En, 0, 0.0, 0.9, None).contains('%'), "the share is not why it waits");
        assert_eq!(goes_on(Lang::En, 0.2, 0.9), "It goes on by itself when there is room.");
        assert!(goes_on(Lang::En, 0.93, 0.9).contains("90 %"));
        assert_eq!(paused_by_hand(Lang::En, Some(4)), "Paused at step 4.");
    }

    #[test]
    fn clean_ups_say_what_came_back_and_what_stays() {
        let report = CleanReport {
            freed: Some(gib(1.4)),
            kept: vec![("UNet".into(), gib(1.7)), ("text encoder".into(), gib(0.4))],
            ..CleanReport::default()
        };
        assert_eq!(clean_report(Lang::En, &report), "Freed 1.4 GiB. 2.1 GiB stays in use by the model.");
        assert_eq!(clean_report(Lang::Zh, &report), "已释放 1.4 GiB。模型仍占用 2.1 GiB。");
        assert_eq!(
            clean_details(Lang::En, &report),
            ["In use before: Unknown, after: Unknown", "UNet: 1.7 GiB", "text encoder: 410 MiB"]
        );
        let with_context = CleanReport { kept: vec![("context".into(), gib(0.3))], ..report };
        let said = clean_report(Lang::En, &with_context);
        assert_eq!(said, "Freed 1.4 GiB. 307 MiB is the driver's own, and goes with the program.");
        assert!(clean_details(Lang::Zh, &with_context).contains(&"驱动上下文：307 MiB".to_owned()));
        let nothing = CleanReport { freed: Some(Bytes::ZERO), ..CleanReport::default() };
        assert_eq!(clean_report(Lang::En, &nothing), "There was nothing to free.");
        assert!(clean_report(Lang::En, &CleanReport::default()).contains("unknown"));
    }

    #[test]
    fn unknown_is_never_a_zero() {
        assert_eq!(of_total(Lang::En, None, Some(gib(8.0))), "Unknown / 8.0 GiB");
        assert_eq!(of_total(Lang::Zh, Some(gib(5.1)), Some(gib(8.0))), "5.1 / 8.0 GiB");
        assert_eq!(clean_button(Lang::En, None), "Clean memory");
        assert_eq!(clean_button(Lang::Zh, Some(gib(1.4))), "清理 1.4 GiB");
    }
}
