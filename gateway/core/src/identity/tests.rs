//! Who is believed, and who is not: by rules, with the time as an argument.

use reach_schemas::call::KeyStage;
use reach_schemas::{AgentId, ErrorCode, Span, Timestamp};

use super::*;

const SKEW: Span = Span::from_secs(60);

fn at(secs: u64) -> Timestamp {
    Timestamp::from_ms((1_800_000_000 + secs) * 1000)
}

fn agent(id: &str) -> AgentId {
    id.parse().unwrap()
}

fn claims(change: impl FnOnce(&mut Claims)) -> Claims {
    let iat = at(0).as_ms() / 1000;
    let mut claims = Claims {
        iss: "here".to_owned(),
        sub: "agent:media/news".to_owned(),
        aud: "here".to_owned(),
        client_id: "news@media".to_owned(),
        iat,
        nbf: iat,
        exp: iat + 43_200,
        jti: "j1".to_owned(),
        scope: "agent".to_owned(),
        generation: 1,
        rot: 0,
        cnf: Confirmation { jkt: "t".to_owned() },
    };
    change(&mut claims);
    claims
}

fn proof(iat: u64, jti: &str, htu: &str) -> Proof {
    let iat = at(iat).as_ms() / 1000;
    Proof { htm: "POST".to_owned(), htu: htu.to_owned(), iat, jti: jti.to_owned(), exp: None, nbf: None }
}

const HERE: &str = "http://127.0.0.1:7340/rpc";

fn joining<'a>(agent: &'a AgentId, key: &'a str, proof: &'a Proof, join: Option<&'a str>) -> Joining<'a> {
    Joining { agent, key: (key, key), proof, hosts: &["127.0.0.1:7340"], join, has_secret: false }
}

/// A book with a join token that lets in `*@media` until 900 s.
fn book() -> Book {
    let join = Join { hash: "h".to_owned(), agents: "*@media".parse().unwrap(), made_at: at(0), expires_at: at(900) };
    Book { joins: [("h".to_owned(), join)].into(), ..Book::default() }
}

/// The same, with `news@media` in it under the key `k`.
fn joined() -> Book {
    let (mut book, news) = (book(), agent("news@media"));
    let principal = book.admit(&joining(&news, "k", &proof(1, "p1", HERE), Some("h")), at(1), SKEW).unwrap();
    book.joins.clear();
    book.principals.insert(news, principal);
    book
}

#[track_caller]
fn check(book: &Book, claims: &Claims, now: u64, expected: Result<(), Rejection>) {
    let judged = book.judge(claims, "here", at(now), &Lifetimes::default());
    assert_eq!(judged.map(|_| ()), expected, "{claims:?} at {now}");
}

#[test]
fn a_token_is_good_for_us_and_for_its_time_and_a_minute_around_it() {
    let book = joined();
    check(&book, &claims(|_| {}), 0, Ok(()));
    check(&book, &claims(|c| c.aud = "there".to_owned()), 0, Err(Rejection::Audience));
    check(&book, &claims(|c| c.iss = "there".to_owned()), 0, Err(Rejection::Audience));
    check(&book, &claims(|c| (c.iat, c.nbf) = (c.iat + 60, c.nbf + 60)), 0, Ok(()));
    check(&book, &claims(|c| c.nbf += 61), 0, Err(Rejection::Early));
    check(&book, &claims(|c| c.iat += 61), 0, Err(Rejection::Early));
    check(&book, &claims(|_| {}), 43_259, Ok(()));
    check(&book, &claims(|_| {}), 43_260, Err(Rejection::Expired));
    check(&book, &claims(|c| c.exp = 0), 0, Err(Rejection::Expired));
    check(&book, &claims(|c| c.exp = u64::MAX), 0, Ok(()));
}

#[test]
fn a_token_says_one_agent_and_says_it_twice() {
    let book = joined();
    for sub in ["news@media", "agent:media", "agent:media/other", "agent:tenant/news", "agent:media/news/x", "agent:/"]
    {
        check(&book, &claims(|c| c.sub = sub.to_owned()), 0, Err(Rejection::Malformed));
    }
    let other = claims(|c| (c.sub, c.client_id) = ("agent:media/sport".to_owned(), "sport@media".to_owned()));
    check(&book, &other, 0, Err(Rejection::Unknown));
}

#[test]
fn the_token_before_the_one_in_use_lives_ten_minutes_at_most() {
    let (mut book, news) = (joined(), agent("news@media"));
    let next = claims(|c| c.rot = 1);
    check(&book, &next, 0, Ok(()));
    let used = book.principals[&news].used(&next, at(100)).unwrap();
    assert_eq!(used.used(&next, at(200)), None, "it is the first use that counts");
    for generation in [0, 2] {
        let other = claims(|c| (c.generation, c.rot) = (generation, 5));
        assert_eq!(used.used(&other, at(200)), None, "it has no token of this generation after it");
    }
    book.principals.insert(news, used);
    check(&book, &claims(|_| {}), 700, Ok(()));
    check(&book, &claims(|_| {}), 701, Err(Rejection::Replaced));
    check(&book, &next, 701, Ok(()));
}

#[test]
fn tokens_end_all_together_or_one_by_one_and_never_come_back() {
    let (mut book, news) = (joined(), agent("news@media"));
    let one = book.principals[&news].revoked_one("j1", at(50_000), at(2));
    book.principals.insert(news.clone(), one.clone());
    check(&book, &claims(|_| {}), 2, Err(Rejection::Revoked));
    check(&book, &claims(|c| c.jti = "j2".to_owned()), 2, Ok(()));
    let all = one.revoked_all();
    book.principals.insert(news.clone(), all);
    check(&book, &claims(|c| c.jti = "j2".to_owned()), 2, Err(Rejection::Revoked));
    // Back by its key: the older ones are as dead as before.
    let again = book.admit(&joining(&news, "k", &proof(3, "p2", HERE), None), at(3), SKEW).unwrap();
    assert_eq!((again.generation, again.revoked_generation), (2, 1));
    book.principals.insert(news, again);
    check(&book, &claims(|c| c.jti = "j2".to_owned()), 3, Err(Rejection::Revoked));
    check(&book, &claims(|c| c.generation = 2), 3, Ok(()));
    check(&book, &claims(|c| c.generation = 3), 3, Err(Rejection::Unknown));
}

#[test]
fn very_many_single_revocations_are_one_of_all() {
    let mut principal = joined().principals.remove(&agent("news@media")).unwrap();
    for number in 0..65 {
        principal = principal.revoked_one(&number.to_string(), at(50_000), at(2));
    }
    assert_eq!((principal.revoked_generation, principal.revoked.len()), (1, 0));
}

#[test]
fn an_agent_joins_by_a_token_and_comes_back_by_its_key_one_generation_on() {
    let (mut book, news) = (joined(), agent("news@media"));
    let again = book.admit(&joining(&news, "k", &proof(5, "p2", HERE), None), at(5), SKEW).unwrap();
    assert_eq!((again.generation, again.joined_at, again.proven_at), (2, at(1), at(5)));
    book.principals.insert(news, again);
    check(&book, &claims(|_| {}), 5, Err(Rejection::Superseded));
    assert_eq!(Rejection::Superseded.code(), ErrorCode::Superseded);
}

#[test]
fn nobody_joins_without_a_token_for_it_or_under_a_name_that_is_another_ones() {
    let (known, news, sport) = (joined(), agent("news@media"), agent("sport@media"));
    let enter = |book: &Book, agent: &AgentId, key: &str, join: Option<&str>, now: u64| {
        book.admit(&joining(agent, key, &proof(now, "p9", HERE), join), at(now), SKEW).map(|p| p.generation)
    };
    assert_eq!(enter(&known, &sport, "k2", None, 5), Err(Refusal::Unknown));
    assert_eq!(enter(&known, &news, "thief", None, 5), Err(Refusal::Unknown));
    assert_eq!(enter(&known, &news, "k", Some("h"), 5), Err(Refusal::Join), "it was used up");
    assert_eq!(enter(&book(), &agent("news@other"), "k", Some("h"), 5), Err(Refusal::Join));
    assert_eq!(enter(&book(), &news, "k", Some("no"), 5), Err(Refusal::Join));
    assert_eq!(enter(&book(), &news, "k", Some("h"), 899), Ok(1));
    assert_eq!(enter(&book(), &news, "k", Some("h"), 900), Err(Refusal::Join));
    let proof = proof(5, "p9", HERE);
    let with_secret = Joining { has_secret: true, ..joining(&news, "new", &proof, None) };
    assert_eq!(known.admit(&with_secret, at(5), SKEW).map(|p| p.generation), Ok(2));
}

#[test]
fn a_proof_is_good_once_for_a_minute_and_for_the_gateway_that_it_names() {
    let used = [Used { jti: "old".to_owned(), until: at(1000) }, Used { jti: "gone".to_owned(), until: at(0) }];
    let check = |proof: Proof, now: u64| proof.check(&["127.0.0.1:7340"], &used, at(now), SKEW).map(|kept| kept.len());
    assert_eq!(check(proof(0, "new", HERE), 0), Ok(2), "what nobody can use again is forgotten");
    assert_eq!(check(proof(0, "new", HERE), 119), Ok(2));
    assert_eq!(check(proof(0, "new", HERE), 120), Err(ProofFlaw::Stale));
    assert_eq!(check(proof(60, "new", HERE), 0), Ok(2));
    assert_eq!(check(proof(61, "new", HERE), 0), Err(ProofFlaw::Stale));
    assert_eq!(check(proof(0, "old", HERE), 0), Err(ProofFlaw::Replayed));
    assert_eq!(check(proof(0, "", HERE), 0), Err(ProofFlaw::Replayed));
    for elsewhere in
        ["http://evil.example/rpc", "http://127.0.0.1:73401/rpc", "127.0.0.1:7340", "", "http://127.0.0.1:7340@evil/"]
    {
        assert_eq!(check(proof(0, "new", elsewhere), 0), Err(ProofFlaw::Elsewhere), "{elsewhere}");
    }
    assert_eq!(check(Proof { htm: "GET".to_owned(), ..proof(0, "new", HERE) }, 0), Err(ProofFlaw::Elsewhere));
}

#[test]
fn no_proof_is_for_a_gateway_without_a_name_and_a_usual_port_may_be_left_out() {
    let check = |htu: &str, hosts: &[&str]| proof(0, "new", htu).check(hosts, &[], at(0), SKEW).is_ok();
    for htu in [HERE, "http://evil.example/rpc", "http:///rpc", ""] {
        assert!(!check(htu, &[]), "{htu}");
    }
    assert!(!check("http:///rpc", &[""]) && !check("", &[""]));
    assert!(check("https://reach.example:443/rpc", &["reach.example"]));
    assert!(check("https://reach.example/rpc", &["reach.example:443"]));
    assert!(check("http://reach.example/rpc", &["reach.example:80"]));
    assert!(!check("https://reach.example/rpc", &["reach.example:80"]));
    assert!(!check("http://reach.example:443/rpc", &["reach.example"]));
    assert!(!check("https://reach.example:4430/rpc", &["reach.example"]));
}

#[test]
fn a_storm_of_proofs_is_held_back() {
    let (mut book, news) = (joined(), agent("news@media"));
    for number in 0..15 {
        let jti = format!("n{number}");
        let next = book.admit(&joining(&news, "k", &proof(5, &jti, HERE), None), at(5), SKEW).unwrap();
        book.principals.insert(news.clone(), next);
    }
    let one_more = book.admit(&joining(&news, "k", &proof(5, "m", HERE), None), at(5), SKEW);
    assert_eq!(one_more, Err(Refusal::Proof(ProofFlaw::TooMany)));
    assert!(book.admit(&joining(&news, "k", &proof(200, "m", HERE), None), at(200), SKEW).is_ok());
}

#[test]
fn renewals_are_spread_over_a_tenth_of_a_life_from_its_half_on() {
    let renew = |jti: u32| claims(|c| c.jti = format!("id-{jti}")).renew_at();
    let times: std::collections::BTreeSet<_> = (0..200).map(renew).collect();
    assert!(times.len() > 50, "{}", times.len());
    assert!(times.first().is_some_and(|first| *first >= at(21_600)));
    assert!(times.last().is_some_and(|last| *last <= at(21_600 + 4_320)));
}

/// What stages the keys are in, as they were made.
fn stages(keys: &[KeyState]) -> Vec<(&str, KeyStage)> {
    keys.iter().map(|key| (key.kid.as_str(), key.stage)).collect()
}

#[test]
fn a_key_is_next_for_a_day_then_signs_for_a_day_and_is_known_until_nothing_of_it_is_good() {
    use KeyStage::{Active, Next, Retiring};
    let schedule = Schedule::default();
    let mut keys = Vec::new();
    let mut made = 0;
    let mut go = |keys: &mut Vec<KeyState>, now: u64| {
        while turn(keys, &schedule, at(now)).wants_key {
            made += 1;
            keys.push(KeyState { kid: format!("k{made}"), stage: Next, since: at(now) });
        }
    };
    go(&mut keys, 0);
    assert_eq!(stages(&keys), [("k1", Active), ("k2", Next)]);
    go(&mut keys, 86_399);
    assert_eq!(stages(&keys), [("k1", Active), ("k2", Next)]);
    go(&mut keys, 86_400);
    assert_eq!(stages(&keys), [("k1", Retiring), ("k2", Active), ("k3", Next)]);
    go(&mut keys, 86_400 + 43_560);
    assert_eq!(stages(&keys), [("k1", Retiring), ("k2", Active), ("k3", Next)]);
    go(&mut keys, 86_400 + 43_561);
    assert_eq!(stages(&keys), [("k2", Active), ("k3", Next)]);
}

#[test]
fn a_key_that_nobody_has_read_yet_does_not_sign_while_another_can() {
    let mut keys = vec![
        KeyState { kid: "old".to_owned(), stage: KeyStage::Active, since: at(0) },
        KeyState { kid: "new".to_owned(), stage: KeyStage::Next, since: at(90_000) },
    ];
    assert_eq!(turn(&mut keys, &Schedule::default(), at(90_599)), Turn::default());
    assert!(turn(&mut keys, &Schedule::default(), at(90_600)).is_changed);
    assert_eq!(keys[1].stage, KeyStage::Active);
}

#[test]
fn what_a_client_says_of_itself_is_believed_once_for_us_and_for_now() {
    let known = joined().principals.remove(&agent("news@media")).unwrap();
    let said = |change: fn(&mut Assertion)| {
        let mut assertion = Assertion {
            iss: "news@media".to_owned(),
            sub: "news@media".to_owned(),
            aud: Audience::Many(vec!["x".to_owned(), "https://here/".to_owned()]),
            exp: at(60).as_ms() / 1000,
            nbf: None,
            jti: "a1".to_owned(),
        };
        change(&mut assertion);
        assertion
    };
    let admit = |assertion: &Assertion, known: &Principal, now: u64| {
        assertion.admit(known, &["https://here".to_owned(), "https://here/oauth/token".to_owned()], at(now), SKEW)
    };
    let again = admit(&said(|_| {}), &known, 0).unwrap();
    assert_eq!((again.generation, again.proven_at), (1, at(0)), "other tokens stay as good as they were");
    assert_eq!(admit(&said(|_| {}), &again, 0), Err(AssertionFlaw::Replayed));
    assert_eq!(
        admit(&said(|a| a.aud = Audience::One("https://there".to_owned())), &known, 0),
        Err(AssertionFlaw::Elsewhere)
    );
    assert_eq!(
        admit(&said(|a| a.exp += 660), &known, 0),
        Err(AssertionFlaw::Long),
        "its id would be remembered for too long"
    );
    assert_eq!(admit(&said(|_| {}), &known, 120), Err(AssertionFlaw::Over));
    assert_eq!(admit(&said(|a| a.nbf = Some(a.exp + 1)), &known, 0), Err(AssertionFlaw::Early));
    assert_eq!(admit(&said(|_| {}), &known.revoked_all(), 0).map(|again| again.generation), Ok(2));
    assert_eq!(said(|_| {}).client(), Some(agent("news@media")));
    assert_eq!(said(|a| a.iss = "sport@media".to_owned()).client(), None);
}
