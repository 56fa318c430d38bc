//! Parts of a function's name: own name, scopes, parameters, result.

/// Spans of a name. All parts together, in order, are the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// Type of the result, or `virtual thunk to`, with the blank behind it.
    pub result: &'a str,
    /// Packages, namespaces, classes, functions around it; outermost first.
    pub scopes: Vec<&'a str>,
    /// Separates scopes, and the last scope from the own name.
    pub separator: &'static str,
    /// The function's own name.
    pub own: &'a str,
    /// Template arguments of the own name.
    pub generics: &'a str,
    /// Parameters with parentheses.
    pub parameters: &'a str,
    /// ` const`, ` [clone .cold]`, `@plt`, ` (OSR at 46)`.
    pub suffix: &'a str,
    /// Whether the name is a method's of Java or .NET: `package.Class.method(parameters)`.
    pub is_java: bool,
}

/// What compilers append to names of parts and copies of C functions.
const CLONES: [&str; 8] = [
    "cold",
    "part",
    "isra",
    "constprop",
    "llvm",
    "lto_priv",
    "localalias",
    "resolver",
];

/// Endings of files, which stand for a function in some VMs' names.
const FILES: [&str; 8] = ["js", "mjs", "cjs", "ts", "so", "py", "rb", "php"];

const ANONYMOUS: &str = "(anonymous namespace)";

/// C++ operators of signs that look like brackets; longer ones first.
const OPERATORS: [&str; 13] = [
    "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">",
];

impl<'a> Parts<'a> {
    pub fn of(name: &'a str) -> Self {
        // A regular expression, or a path.
        if name.starts_with('/') {
            return Parts::plain(name);
        }
        let parts = java(name).or_else(|| native(name));
        parts.unwrap_or_else(|| Parts::plain(name))
    }

    fn plain(name: &'a str) -> Self {
        Parts {
            own: name,
            ..Parts::default()
        }
    }

    /// Number of scopes, from the innermost, without which the own name says nothing: a closure's.
    pub fn scopes_needed(&self) -> usize {
        let says_nothing = |name: &str| name.starts_with('{') || name == "operator()";
        let inner = self.scopes.iter().rev();
        let around = std::iter::once(&self.own).chain(inner);
        let number = around.take_while(|name| says_nothing(name)).count();
        number.min(self.scopes.len())
    }
}

/// Java's `package.Class.method(parameters)`, which .NET's names resemble.
fn java(name: &str) -> Option<Parts<'_>> {
    let open = name.find('(')?;
    let (head, tail) = name.split_at(open);
    let close = tail.find(')')?;
    let (parameters, suffix) = tail.split_at(close + 1);
    if head.contains([' ', ':', '~', '*', '&']) || suffix.starts_with('.') {
        return None;
    }
    let dots = dots_outside_brackets(head);
    let last = *dots.last()?;
    // .NET's constructors: `System.String..ctor()`.
    let is_constructor = head[..last].ends_with('.');
    let (class, own) = match is_constructor {
        true => (&head[..last - 1], &head[last..]),
        false => (&head[..last], &head[last + 1..]),
    };
    if own.is_empty() {
        return None;
    }
    let mut scopes = Vec::new();
    let mut from = 0;
    for dot in dots.into_iter().filter(|dot| *dot < class.len()) {
        scopes.push(&class[from..dot]);
        from = dot + 1;
    }
    scopes.push(&class[from..]);
    Some(Parts {
        scopes,
        separator: ".",
        own,
        parameters,
        suffix,
        is_java: true,
        ..Parts::default()
    })
}

/// Positions of dots outside of brackets, which hold .NET's type arguments.
fn dots_outside_brackets(text: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut dots = Vec::new();
    for (at, letter) in text.bytes().enumerate() {
        match letter {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'.' if depth == 0 => dots.push(at),
            _ => {}
        }
    }
    dots
}

/// Parts of a C++, Rust, Go, C or JavaScript function's name.
fn native(name: &str) -> Option<Parts<'_>> {
    if name.starts_with(['(', '[']) && !name.starts_with(ANONYMOUS) {
        return None;
    }
    let found = Scan::of(name);
    let (head, parameters) = (name.get(..found.end)?, name.get(found.end..found.suffix)?);
    let mut suffix = name.get(found.suffix..)?;
    let mut scopes = Vec::new();
    let mut from = found.start;
    for at in found.separators {
        scopes.push(head.get(from..at)?);
        from = at + 2;
    }
    let mut own = head.get(from..)?;
    let mut separator = "::";
    if parameters.is_empty() {
        let clone = clone_at(own).unwrap_or(own.len());
        suffix = name.get(from + clone..)?;
        own = &own[..clone];
        if scopes.is_empty()
            && let Some((dotted, last)) = dotted(own)
        {
            (scopes, own, separator) = (dotted, last, ".");
        }
    }
    let generics = generics_at(own).unwrap_or(own.len());
    let (mut own, generics) = own.split_at(generics);
    let mut start = found.start;
    if parameters.is_empty() && scopes.is_empty() && generics.is_empty() {
        // Words: `return entry points`.
        start = 0;
        own = name.get(..found.start + own.len())?;
    }
    let whole = !own.is_empty() && scopes.iter().all(|scope| !scope.is_empty());
    whole.then_some(Parts {
        result: &name[..start],
        scopes,
        separator,
        own,
        generics,
        parameters,
        suffix,
        is_java: false,
    })
}

/// Begin of `.cold`, `.isra.0`, `@plt` in a C name.
fn clone_at(own: &str) -> Option<usize> {
    let is_clone = |at: usize| {
        let rest = own[at + 1..].split(['.', ' ']).next();
        own[at..].starts_with('@') || rest.is_some_and(|word| CLONES.contains(&word))
    };
    let mut signs = own.match_indices(['.', '@']).map(|(at, _)| at);
    signs.find(|&at| at > 0 && is_clone(at))
}

/// Go and JavaScript: `encoding/json.(*decodeState).object`, `Module._compile`.
fn dotted(own: &str) -> Option<(Vec<&str>, &str)> {
    let is_name = |part: &str| {
        let first = part.trim_start_matches(['(', '*', '#']).chars().next();
        first.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$' | '<'))
    };
    let mut parts: Vec<&str> = own.split('.').collect();
    let all = parts.len() > 1 && parts.iter().all(|part| is_name(part));
    // Else the signs around dots are no separators: a path, a number.
    let last = all.then(|| parts.pop()).flatten()?;
    (!last.contains('/') && !FILES.contains(&last)).then_some((parts, last))
}

/// Begin of the template arguments in an own name.
fn generics_at(own: &str) -> Option<usize> {
    if own.starts_with(['<', '{']) || own.starts_with("operator") || !own.ends_with(['>', ']']) {
        return None;
    }
    let open = own.find(['<', '['])?;
    let open = own[..open].strip_suffix("::").map_or(open, str::len);
    (open > 0).then_some(open)
}

/// The places of a native name where its parts begin.
#[derive(Debug, Default)]
struct Scan {
    /// Begin of scopes and own name.
    start: usize,
    /// Positions of `::` between scopes and before the own name.
    separators: Vec<usize>,
    /// End of the own name with its template arguments.
    end: usize,
    /// End of the parameters.
    suffix: usize,
}

impl Scan {
    fn of(name: &str) -> Scan {
        let mut scan = Scan::default();
        let mut at = 0;
        // In `operator std::string`, the type belongs to the name.
        let mut is_conversion = false;
        while let Some(&byte) = name.as_bytes().get(at) {
            let (before, rest) = (name.get(..at).unwrap_or(""), name.get(at..).unwrap_or(""));
            let is_begin = at == scan.start || before.ends_with("::");
            if is_begin && let Some(sign) = rest.strip_prefix("operator") {
                let known = OPERATORS.iter().find(|known| sign.starts_with(**known));
                let length = known.map_or(0, |known| known.len());
                is_conversion = known.is_none() && sign.starts_with(' ');
                // A blank keeps `operator< <int>` apart from `operator<<`.
                let blank = usize::from(known.is_some() && sign[length..].starts_with(" <"));
                at += "operator".len() + length + blank;
                continue;
            }
            match byte {
                b':' if rest.starts_with("::") && !is_conversion => {
                    let begin = &rest[2..];
                    // `new::<u32>` is one part; `<impl Display for u32>` is a scope.
                    let is_generic = begin.starts_with('<') && !begin.starts_with("<impl ");
                    if !is_generic {
                        scan.separators.push(at);
                    }
                    at += 2;
                    continue;
                }
                b' ' if !is_conversion => {
                    let begin = &rest[1..];
                    let is_other = begin.starts_with(['[', '(']) && !begin.starts_with(ANONYMOUS);
                    if is_other || begin.is_empty() {
                        break;
                    }
                    scan.start = at + 1;
                    scan.separators.clear();
                }
                b'(' => {
                    let end = at + closed(rest);
                    let behind = name.get(end..).unwrap_or("");
                    let inner = behind.strip_prefix(" const").unwrap_or(behind);
                    let is_scope = inner.starts_with("::");
                    let is_go = before.ends_with('.') && behind.starts_with('.');
                    let is_type = before.ends_with("decltype") && behind.starts_with(' ');
                    if !(is_scope || is_go || is_type) {
                        scan.end = at;
                        scan.suffix = end;
                        return scan;
                    }
                    at = end
                        + if is_scope {
                            behind.len() - inner.len()
                        } else {
                            0
                        };
                    continue;
                }
                b'<' | b'{' | b'[' => {
                    at += closed(rest);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        scan.end = at;
        scan.suffix = at;
        scan
    }
}

/// Length of the bracketed text at the start of `text`, brackets included; the whole length if
/// a closing bracket is missing.
fn closed(text: &str) -> usize {
    let mut open: Vec<u8> = Vec::new();
    let mut before = 0;
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        match byte {
            b'(' => open.push(b')'),
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'<' => open.push(b'>'),
            // Arrows, and signs in expressions, close nothing.
            b'>' if before == b'-' || open.last() != Some(&b'>') => {}
            b')' | b'}' | b']' | b'>' => {
                if let Some(same) = open.iter().rposition(|one| *one == byte) {
                    open.truncate(same);
                }
                if open.is_empty() {
                    return at + 1;
                }
            }
            _ => {}
        }
        before = byte;
    }
    text.len()
}
