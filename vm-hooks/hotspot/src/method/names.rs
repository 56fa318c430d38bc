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
    let mut name = String::with_capacity(internal.len());
    push_class_name(&mut name, internal);
    name
}

/// Appends [`class_name`].
pub(crate) fn push_class_name(text: &mut String, internal: &str) {
    let (class, number) = match internal.split_once("+0x") {
        Some((class, number)) => (class, Some(number)),
        None => (internal, None),
    };
    for (index, part) in class.split('/').enumerate() {
        if index > 0 {
            text.push('.');
        }
        text.push_str(part);
    }
    if let Some(number) = number {
        text.extend(["+0x", number.trim_start_matches('0')]);
    }
}

/// Parameters from a method's descriptor: `(ILjava/lang/String;)V` gives `(int, String)`.
/// Invalid descriptors stay unchanged.
#[must_use]
pub fn readable_signature(descriptor: &str) -> String {
    let mut text = String::with_capacity(descriptor.len());
    push_signature(&mut text, descriptor);
    text
}

/// Appends [`readable_signature`].
pub(crate) fn push_signature(text: &mut String, descriptor: &str) {
    let before = text.len();
    if push_parameters(text, descriptor).is_none() {
        text.truncate(before);
        text.push_str(descriptor);
    }
}

fn push_parameters(all: &mut String, descriptor: &str) -> Option<()> {
    let (parameters, _) = descriptor.strip_prefix('(')?.split_once(')')?;
    let mut rest = parameters;
    all.push('(');
    while !rest.is_empty() {
        if rest.len() < parameters.len() {
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
    Some(())
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
