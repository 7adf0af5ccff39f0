//! Words that carry no wish: articles, pronouns, courtesies, function characters. The lists are
//! closed classes of the two languages, no matter what is searched for.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Function words of English in lowercase, and the courtesies of a request.
const ENGLISH: &str = "a an the this that these those there here it its it's he she they them their his her hers him \
 i i'm i've i'd i'll me my mine myself we us our ours you your yours someone anyone somebody anybody who whom whose \
 is are was were be been being am do does did done doing has have had having will would shall should can could may \
 might must ought of in on at by for with from to into onto out up down off over under about as than then so too very \
 and or but nor if while because since until till when whenever what which how why where also just only ever never \
 not no don't doesn't didn't won't isn't aren't wasn't can't cannot couldn't shouldn't wouldn't haven't hasn't yet \
 still already again once please plz pls thanks thank kindly let let's want wants need needs like would'd get gets got \
 some any all each every both few more most other another such same own much many lot lots one ones thing things \
 something anything nothing everything way now soon well really quite rather maybe perhaps ok okay hi hello hey dear \
 two three four five six seven eight nine ten first second third next \
 past around across along behind beside beyond above below toward towards despite upon \
 between among before after during through against without within per via etc go goes going come make makes teh dis \
 u ur r im ive dont wont cant isnt whats that's there's what's he's she's they're we're you're say says said else";

/// Chinese characters that bind words and name nothing.
const CHINESE: &str = "的了吗呢吧啊呀哦嘛么着过得地之其而且与和或及跟把被让使给对向从到为以于在是有就都也还又再才只\
 很太更最挺真好些个这那哪我你您他她它们谁什怎请能可会要想应该去来上下里中不没别无并但若如所则即因此等啦呗咱俺哈喔哎\
 一二两三四五六七八九十";

static ENGLISH_SET: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| ENGLISH.split_whitespace().collect());
static CHINESE_SET: LazyLock<BTreeSet<char>> =
    LazyLock::new(|| CHINESE.chars().filter(|c| !c.is_whitespace()).collect());

/// Whether a lowercase word is a function word.
pub(super) fn is_stop_word(word: &str) -> bool {
    word.chars().nth(1).is_none() || ENGLISH_SET.contains(word)
}

/// Whether a character is a function character.
pub(super) fn is_stop_character(c: char) -> bool {
    CHINESE_SET.contains(&c)
}
