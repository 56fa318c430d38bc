//! What a JVM tells beside its code, against what it logs itself, on every JVM that there
//! is. Needs `javac`; says SKIPPED where there is none.
mod collections;
mod compilations;
