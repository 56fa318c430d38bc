//! Masks secrets in command lines: recordings and exports are handed on.

/// Stands in place of a secret.
const MASK: &str = "***";

/// Last words of the names of options and variables with secrets, without separators.
const SECRETS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "credential",
    "credentials",
];

/// Masks the secrets of a command line: values of options (`--password=x`, `--password x`,
/// `-Dapi.token=x`), variables (`DB_PASSWORD=x`), passwords in URLs (`scheme://user:x@host`) and
/// HTTP authorization.
#[must_use]
pub fn mask_words(words: Vec<String>) -> Vec<String> {
    let mut is_value = false;
    let mask = |word: String| {
        let is_secret = is_value && !word.starts_with('-');
        is_value = word.starts_with('-') && !word.contains('=') && is_secret_name(&word);
        match is_secret {
            true => MASK.to_owned(),
            false => masked(&word),
        }
    };
    words.into_iter().map(mask).collect()
}

/// Masks the secrets of a text of words, as [`mask_words`] does.
#[must_use]
pub fn mask_text(text: &str) -> String {
    let words = text.split(' ').map(str::to_owned).collect();
    mask_words(words).join(" ")
}

fn masked(word: &str) -> String {
    if let Some(url) = without_password(word) {
        return url;
    }
    if let Some((name, value)) = word.split_once('=') {
        return match is_secret_name(name) && !value.is_empty() {
            true => format!("{name}={MASK}"),
            false => format!("{name}={}", masked(value)),
        };
    }
    const AUTHORIZATION: &str = "authorization:";
    let head = word.get(..AUTHORIZATION.len());
    if head.is_some_and(|head| head.eq_ignore_ascii_case(AUTHORIZATION)) {
        return format!("{}{MASK}", head.unwrap_or_default());
    }
    word.to_owned()
}

/// A URL with its password masked; `None` for words without.
fn without_password(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@')?;
    let (user, _) = user.split_once(':')?;
    Some(format!("{scheme}://{user}:{MASK}@{host}{path}"))
}

/// Whether the name of an option or variable ends in a word for secrets.
fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SECRETS.iter().any(|secret| name.ends_with(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_nothing_else() {
        for (text, masked) in [
            (
                "java -Ddb.password=x -jar a.jar",
                "java -Ddb.password=*** -jar a.jar",
            ),
            (
                "-Djavax.net.ssl.keyStorePassword=a=b",
                "-Djavax.net.ssl.keyStorePassword=***",
            ),
            ("app --password x --user y", "app --password *** --user y"),
            ("app --password --user y", "app --password --user y"),
            (
                "env DB_PASSWD=x AWS_SECRET_ACCESS_KEY=y app",
                "env DB_PASSWD=*** AWS_SECRET_ACCESS_KEY=*** app",
            ),
            (
                "psql postgres://me:x@host/db?a=b",
                "psql postgres://me:***@host/db?a=b",
            ),
            ("--url=https://me:x@host", "--url=https://me:***@host"),
            ("https://host/a:b@c", "https://host/a:b@c"),
            ("curl -H Authorization:Bearer", "curl -H Authorization:***"),
            (
                "--api-key=x --max-tokens=5 -Dtokenizer=z",
                "--api-key=*** --max-tokens=5 -Dtokenizer=z",
            ),
            ("a  b --token=", "a  b --token="),
            ("", ""),
        ] {
            assert_eq!(mask_text(text), masked);
        }
    }
}
