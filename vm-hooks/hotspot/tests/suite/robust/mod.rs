//! Unusual JVMs: unknown versions, missing fields, unreadable or damaged memory, other Java
//! implementations, flags that change the memory layout.

mod damaged;
mod fields;
mod flags;
mod readings;
mod refused;
mod starting;
mod versions;
