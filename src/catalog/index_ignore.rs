//! Which files of a catalog count: `.indexignore` files leave some out, with the patterns of `.gitignore`.
//!
//! Follows `walkFiles` of operator-registry (`alpha/declcfg/load.go`): every file counts, whatever it is called, but
//! for the `.indexignore` files themselves and what they match.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{content::Content, parse::BLOB_RULE};
use crate::problem::Problem;

const FILE_NAME: &str = ".indexignore";

/// As many patterns are tried on each file.
const MOST_PATTERNS: usize = 1_000;

/// The files that count, with their sizes, in byte order of their paths.
///
/// # Errors
/// When an `.indexignore` file cannot be read or holds a pattern that is none; all of them are told.
pub(super) fn kept(content: &dyn Content) -> Result<Vec<(String, u64)>, Vec<Problem>> {
    let files = content.files();
    let (mut matchers, mut problems) = (vec![], vec![]);
    for (path, size) in &files {
        let Some(folder) = folder_of_ignore_file(path) else {
            continue;
        };
        let text = content
            .read(path, 0..*size)
            .map_err(|error| error.to_string());
        match text.and_then(|text| patterns(&text)) {
            Ok(patterns) => matchers.extend(patterns.into_iter().map(|pattern| (folder, pattern))),
            Err(message) => problems.push(Problem::error(BLOB_RULE, message).at(path.as_str())),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if matchers.len() > MOST_PATTERNS {
        let message = format!("the {FILE_NAME} files hold more than {MOST_PATTERNS} patterns");
        return Err(vec![Problem::error(BLOB_RULE, message)]);
    }
    // A folder comes before those inside it.
    matchers.sort_by_key(|(folder, _)| *folder);
    let counts = |(path, _): &&(String, u64)| {
        folder_of_ignore_file(path).is_none() && !is_ignored(path, &matchers)
    };
    Ok(files.iter().filter(counts).cloned().collect())
}

/// The folder that an `.indexignore` file speaks of, with a slash at its end unless it is the root.
fn folder_of_ignore_file(path: &str) -> Option<&str> {
    let folder = path.strip_suffix(FILE_NAME)?;
    (folder.is_empty() || folder.ends_with('/')).then_some(folder)
}

/// The patterns of an `.indexignore` file, each by itself: the last one that speaks of a path decides, also where it
/// speaks of a folder above another one's.
fn patterns(text: &[u8]) -> Result<Vec<Gitignore>, String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim);
    // Without a name there is nothing to match.
    let named = lines.filter(|line| !line.trim_start_matches(['!', '/']).is_empty());
    let patterns = named.map(|line| {
        let mut builder = GitignoreBuilder::new("");
        let added = builder.add_line(None, line);
        let pattern = added.and_then(|builder| builder.build());
        pattern.map_err(|error| format!("{line:?} is no pattern: {error}"))
    });
    patterns.collect()
}

/// The innermost `.indexignore` file that speaks of a path decides.
fn is_ignored(path: &str, matchers: &[(&str, Gitignore)]) -> bool {
    let verdict = matchers.iter().rev().find_map(|(folder, matcher)| {
        let below = path.strip_prefix(folder)?;
        let matched = matcher.matched_path_or_any_parents(below, false);
        (!matched.is_none()).then(|| matched.is_ignore())
    });
    verdict.unwrap_or(false)
}
