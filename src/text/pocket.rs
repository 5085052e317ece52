//! What the phrases that Pocket knows mean in Chinese, and how their kinds are called.
//!
//! Pocket reads English, so the phrase that is put into the prompt is English in both windows; in Chinese its meaning stands
//! beside it. The phrases themselves lie beside the weights, in `assets/pocket/words.json`; a test wants each of them here.

use super::{Lang, phrases};

phrases! {
    // Kinds.
    KIND_PERSON: "Person", "人物";
    KIND_HAIR: "Hair", "头发";
    KIND_FACE: "Face", "面部";
    KIND_EXPRESSION: "Expression", "表情";
    KIND_ACCESSORIES: "Accessories", "配饰";
    KIND_CLOTHING: "Clothing", "服装";
    KIND_BACKGROUND: "Background", "背景";
    KIND_LIGHT: "Light", "光线";
    KIND_FRAMING: "Framing", "取景";

    // Colours by themselves, before a piece of clothing.
    RED: "red", "红色";
    ORANGE: "orange", "橙色";
    YELLOW: "yellow", "黄色";
    GREEN: "green", "绿色";
    TEAL: "teal", "青色";
    BLUE: "blue", "蓝色";
    PURPLE: "purple", "紫色";
    PINK: "pink", "粉色";
    BROWN: "brown", "棕色";
    WHITE: "white", "白色";
    GREY: "grey", "灰色";
    BLACK: "black", "黑色";

    WOMAN: "woman", "女性";
    MAN: "man", "男性";
    YOUNG_WOMAN: "young woman", "年轻女性";
    YOUNG_MAN: "young man", "年轻男性";
    MIDDLE_AGED_WOMAN: "middle-aged woman", "中年女性";
    MIDDLE_AGED_MAN: "middle-aged man", "中年男性";
    OLD_WOMAN: "old woman", "老年女性";
    OLD_MAN: "old man", "老年男性";

    BLACK_HAIR: "black hair", "黑发";
    BROWN_HAIR: "brown hair", "棕发";
    BLONDE_HAIR: "blonde hair", "金发";
    RED_HAIR: "red hair", "红发";
    GREY_HAIR: "grey hair", "灰发";
    WHITE_HAIR: "white hair", "白发";
    BLUE_HAIR: "blue hair", "蓝发";
    PINK_HAIR: "pink hair", "粉发";
    GREEN_HAIR: "green hair", "绿发";
    PURPLE_HAIR: "purple hair", "紫发";
    SHORT_HAIR: "short hair", "短发";
    SHOULDER_LENGTH_HAIR: "shoulder-length hair", "及肩发";
    LONG_HAIR: "long hair", "长发";
    STRAIGHT_HAIR: "straight hair", "直发";
    WAVY_HAIR: "wavy hair", "波浪发";
    CURLY_HAIR: "curly hair", "卷发";
    HAIR_IN_A_BUN: "hair in a bun", "盘发";
    BALD: "bald", "光头";

    FAIR_SKIN: "fair skin", "白净皮肤";
    LIGHT_SKIN: "light skin", "浅色皮肤";
    TAN_SKIN: "tan skin", "小麦色皮肤";
    BROWN_SKIN: "brown skin", "棕色皮肤";
    DARK_SKIN: "dark skin", "深色皮肤";
    OVAL_FACE: "oval face", "鹅蛋脸";
    ROUND_FACE: "round face", "圆脸";
    LONG_FACE: "long face", "长脸";
    SQUARE_JAW: "square jaw", "方下巴";
    BROWN_EYES: "brown eyes", "棕色眼睛";
    BLUE_EYES: "blue eyes", "蓝色眼睛";
    GREEN_EYES: "green eyes", "绿色眼睛";
    GREY_EYES: "grey eyes", "灰色眼睛";
    BEARD: "beard", "胡须";
    MOUSTACHE: "moustache", "小胡子";
    CLEAN_SHAVEN: "clean-shaven", "不留胡须";

    SMILING: "smiling", "微笑";
    LAUGHING: "laughing", "大笑";
    SERIOUS: "serious", "严肃";
    SAD: "sad", "悲伤";
    SURPRISED: "surprised", "惊讶";
    LOOKING_LEFT: "looking left", "看向左侧";
    LOOKING_AT_THE_CAMERA: "looking at the camera", "看向镜头";
    LOOKING_RIGHT: "looking right", "看向右侧";

    GLASSES: "glasses", "眼镜";
    SUNGLASSES: "sunglasses", "墨镜";
    BEANIE: "beanie", "毛线帽";
    BASEBALL_CAP: "baseball cap", "棒球帽";
    SUN_HAT: "sun hat", "遮阳帽";
    BERET: "beret", "贝雷帽";

    T_SHIRT: "t-shirt", "T 恤";
    SHIRT: "shirt", "衬衫";
    TURTLENECK: "turtleneck", "高领毛衣";
    SUIT: "suit", "西装";
    HOODIE: "hoodie", "连帽衫";
    DRESS: "dress", "连衣裙";

    RED_BACKGROUND: "red background", "红色背景";
    ORANGE_BACKGROUND: "orange background", "橙色背景";
    YELLOW_BACKGROUND: "yellow background", "黄色背景";
    GREEN_BACKGROUND: "green background", "绿色背景";
    TEAL_BACKGROUND: "teal background", "青色背景";
    BLUE_BACKGROUND: "blue background", "蓝色背景";
    PURPLE_BACKGROUND: "purple background", "紫色背景";
    PINK_BACKGROUND: "pink background", "粉色背景";
    BROWN_BACKGROUND: "brown background", "棕色背景";
    WHITE_BACKGROUND: "white background", "白色背景";
    GREY_BACKGROUND: "grey background", "灰色背景";
    BLACK_BACKGROUND: "black background", "黑色背景";
    GRADIENT_BACKGROUND: "gradient background", "渐变背景";
    PLAIN_BACKGROUND: "plain background", "纯色背景";

    SOFT_LIGHT: "soft light", "柔光";
    HARD_LIGHT: "hard light", "硬光";
    LIGHT_FROM_THE_LEFT: "light from the left", "左侧光";
    FRONT_LIGHT: "front light", "正面光";
    LIGHT_FROM_THE_RIGHT: "light from the right", "右侧光";
    BLACK_AND_WHITE: "black and white", "黑白";

    CLOSE_UP: "close-up", "特写";
    HEAD_AND_SHOULDERS: "head and shoulders", "头肩像";
}

/// How a kind of phrases is called; one that is not known here by its own name.
pub fn kind(lang: Lang, name: &str) -> String {
    let known = ALL.iter().find(|phrase| phrase.key.starts_with("KIND_") && phrase.en.eq_ignore_ascii_case(name));
    known.map_or_else(|| name.to_owned(), |phrase| phrase.get(lang).to_owned())
}

/// What a phrase means, in a language other than its own; also of a colour before a phrase.
pub fn meaning(lang: Lang, phrase: &str) -> Option<String> {
    if lang == Lang::En {
        return None;
    }
    let known = |words: &str| ALL.iter().find(|known| known.en == words).map(|known| known.get(lang));
    if let Some(found) = known(phrase) {
        return Some(found.to_owned());
    }
    let (color, thing) = phrase.split_once(' ')?;
    let (color, thing) = (known(color)?, known(thing)?);
    // Between Chinese and Latin letters stands a space, between Chinese ones none.
    let gap = if thing.starts_with(|c: char| c.is_ascii()) { " " } else { "" };
    Some(format!("{color}{gap}{thing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_told_in_chinese_and_english_needs_none() {
        assert_eq!(meaning(Lang::Zh, "curly hair").as_deref(), Some("卷发"));
        assert_eq!(meaning(Lang::Zh, "teal t-shirt").as_deref(), Some("青色 T 恤"));
        assert_eq!(meaning(Lang::Zh, "red suit").as_deref(), Some("红色西装"));
        assert_eq!(meaning(Lang::Zh, "hair of glass"), None);
        assert_eq!(meaning(Lang::En, "curly hair"), None);
    }

    #[test]
    fn kinds_have_names_known_or_not() {
        assert_eq!((kind(Lang::En, "hair"), kind(Lang::Zh, "light")), ("Hair".to_owned(), "光线".to_owned()));
        assert_eq!(kind(Lang::Zh, "weather"), "weather");
    }
}
