//! Method and class names for people.

use super::MethodInfo;

impl MethodInfo {
    /// Name with parameters: `put(Object, Object)`.
    #[must_use]
    pub fn name_with_parameters(&self) -> String {
        format!("{}{}", self.name, readable_signature(&self.signature))
    }

    /// Likewise with the class: `java.util.HashMap.put(Object, Object)`.
    #[must_use]
    pub fn full_name(&self) -> String {
        let class = class_name(&self.class);
        format!("{class}.{}", self.name_with_parameters())
    }
}

/// Class name in Java's form, with dots for slashes. Hidden classes keep their distinguishing
/// number (`Main$$Lambda+0x1234`), without leading zeros.
#[must_use]
pub fn class_name(internal: &str) -> String {
    match internal.split_once("+0x") {
        Some((class, number)) => {
            let number = number.trim_start_matches('0');
            format!("{}+0x{number}", class.replace('/', "."))
        }
        None => internal.replace('/', "."),
    }
}

/// Parameters from a method's descriptor: `(ILjava/lang/String;)V` gives `(int, String)`.
/// Invalid descriptors stay unchanged.
#[must_use]
pub fn readable_signature(descriptor: &str) -> String {
    parameters(descriptor).unwrap_or_else(|| descriptor.to_owned())
}

fn parameters(descriptor: &str) -> Option<String> {
    let (mut rest, _) = descriptor.strip_prefix('(')?.split_once(')')?;
    let mut all = String::from("(");
    while !rest.is_empty() {
        if all.len() > 1 {
            all.push_str(", ");
        }
        let element = rest.trim_start_matches('[');
        let dimensions = rest.len() - element.len();
        let (kind, after) = element.split_at_checked(1)?;
        rest = if kind == "L" {
            let (class, after) = after.split_once(';')?;
            all.push_str(class.rsplit('/').next()?);
            after
        } else {
            all.push_str(primitive(kind)?);
            after
        };
        for _ in 0..dimensions {
            all.push_str("[]");
        }
    }
    all.push(')');
    Some(all)
}

/// Primitive type of a one-letter descriptor; `None` for other letters.
pub(crate) fn primitive(descriptor: &str) -> Option<&'static str> {
    Some(match descriptor {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable() {
        assert_eq!(class_name("java/lang/String"), "java.lang.String");
        assert_eq!(
            class_name("Main$$Lambda$14+0x0000000800c03000"),
            "Main$$Lambda$14+0x800c03000"
        );
        assert_eq!(readable_signature("()V"), "()");
        assert_eq!(
            readable_signature("(I[[JLjava/util/Map$Entry;Z)V"),
            "(int, long[][], Map$Entry, boolean)"
        );
        for odd in ["", "(", "(X)V", "(Ljava/lang", "(é)V"] {
            assert_eq!(readable_signature(odd), odd);
        }
    }
}
