//! Figures with their units: durations, counts, sizes, shares.

use super::{Lang, phrases};
use crate::base::Size;
use std::fmt::Display;
use std::time::Duration;

phrases! {
    SECONDS: "{s} s", "{s} 秒";
    MINUTES: "{m} min", "{m} 分钟";
    MINUTES_SECONDS: "{m} min {s} s", "{m} 分 {s} 秒";
    HOURS: "{h} h", "{h} 小时";
    HOURS_MINUTES: "{h} h {m} min", "{h} 小时 {m} 分";
    ABOUT: "about {time}", "约 {time}";
    LESS_THAN_A_SECOND: "less than 1 s", "不到 1 秒";
    ONE_PICTURE: "1 picture", "1 张图片";
    PICTURES: "{count} pictures", "{count} 张图片";
    ONE_STEP: "1 step", "1 步";
    STEPS: "{count} steps", "{count} 步";
    PERCENT: "{share} %", "{share}%";
    SIZE_VALUE: "{width}×{height}", "{width}×{height}";
    /// A name and its value on one line.
    PAIR: "{name}: {value}", "{name}：{value}";
}

/// "6 s", "1 min 20 s", "2 h 5 min": two units at most, whole ones.
pub fn duration(lang: Lang, time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (h, m, s) {
        (0, 0, s) => SECONDS.with(lang, &[("s", &s)]),
        (0, m, 0) => MINUTES.with(lang, &[("m", &m)]),
        (0, m, s) => MINUTES_SECONDS.with(lang, &[("m", &m), ("s", &s)]),
        (h, 0, _) => HOURS.with(lang, &[("h", &h)]),
        (h, m, _) => HOURS_MINUTES.with(lang, &[("h", &h), ("m", &m)]),
    }
}

/// "6.2 s" below a minute, where the tenth is worth saying; else as [`duration`].
pub fn took(lang: Lang, seconds: f64) -> String {
    if seconds.is_finite() && (0.0..59.95).contains(&seconds) {
        SECONDS.with(lang, &[("s", &format!("{seconds:.1}"))])
    } else {
        duration(lang, Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }
}

/// "about 6 s", for what is not measured yet.
pub fn about(lang: Lang, time: Duration) -> String {
    if time.as_secs_f64() < 0.5 {
        LESS_THAN_A_SECOND.get(lang).to_owned()
    } else {
        ABOUT.with(lang, &[("time", &duration(lang, time))])
    }
}

pub fn pictures(lang: Lang, count: u32) -> String {
    if count == 1 { ONE_PICTURE.get(lang).to_owned() } else { PICTURES.with(lang, &[("count", &count)]) }
}

pub fn steps(lang: Lang, count: u32) -> String {
    if count == 1 { ONE_STEP.get(lang).to_owned() } else { STEPS.with(lang, &[("count", &count)]) }
}

/// "512×768".
pub fn size(lang: Lang, size: Size) -> String {
    SIZE_VALUE.with(lang, &[("width", &size.width()), ("height", &size.height())])
}

/// "UNet: 1.7 GiB".
pub fn pair(lang: Lang, name: impl Display, value: impl Display) -> String {
    PAIR.with(lang, &[("name", &name), ("value", &value)])
}

/// A share between 0 and 1 as a whole number of percent, without the sign: "93".
pub fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_two_units_at_most() {
        for (seconds, en, zh) in [
            (0.2, "0 s", "0 秒"),
            (6.4, "6 s", "6 秒"),
            (59.6, "1 min", "1 分钟"),
            (80.0, "1 min 20 s", "1 分 20 秒"),
            (7500.0, "2 h 5 min", "2 小时 5 分"),
            (3600.0, "1 h", "1 小时"),
        ] {
            let time = Duration::from_secs_f64(seconds);
            assert_eq!((duration(Lang::En, time).as_str(), duration(Lang::Zh, time).as_str()), (en, zh));
        }
        assert_eq!(about(Lang::En, Duration::from_secs(6)), "about 6 s");
        assert_eq!(about(Lang::Zh, Duration::from_secs(6)), "约 6 秒");
        assert_eq!(about(Lang::En, Duration::from_millis(80)), "less than 1 s");
        assert_eq!(took(Lang::En, 6.24), "6.2 s");
        assert_eq!(took(Lang::En, 59.97), "1 min");
        assert_eq!(took(Lang::En, f64::NAN), "0 s");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(pictures(Lang::En, 1), "1 picture");
        assert_eq!(pictures(Lang::En, 0), "0 pictures");
        assert_eq!(steps(Lang::Zh, 25), "25 步");
    }
}
