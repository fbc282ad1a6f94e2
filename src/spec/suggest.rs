//! "Did you mean": the nearest of the words that would have been right.

/// The candidate most like `word`, if one is near enough to be a misspelling.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let score = |candidate: &str| strsim::jaro_winkler(&lower, &candidate.to_lowercase());
    let best = candidates.into_iter().map(|candidate| (score(candidate), candidate));
    let best = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.8).then_some(best.1)
}

/// ``did you mean `batch`?``, or nothing.
#[must_use]
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|found| format!("did you mean `{found}`?"))
}

/// ``a, b or c`` in backticks, shortened after twelve.
#[must_use]
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing: there are none".to_owned(),
        [only] => only.clone(),
        [many @ .., _] if quoted.len() > 24 => format!("{}, ...", many[..24.min(many.len())].join(", ")),
        [many @ .., last] => format!("{} or {last}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("bacth", ["batch", "storage"]), Some("batch"));
        assert_eq!(nearest("Blocks", ["blocks"]), Some("blocks"));
        assert_eq!(nearest("xyz", ["batch", "storage"]), None);
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
