//! Classes whose index the VM knows.

/// Declares the known classes.
macro_rules! known {
    ($($(#[$meta:meta])* $constant:ident $index:literal $name:literal [$($field:literal)*])*) => {
        $($(#[$meta])* pub const $constant: u32 = $index;)*

        /// Index, name and instance variables of the classes that the VM knows. Instance variables
        /// are those that the class itself declares.
        pub const KNOWN: &[(u32, &str, &[&str])] = &[$(($index, $name, &[$($field),*]),)*];
    };
}

known! {
    /// Integers of 61 bits.
    SMALL_INTEGER 1 "SmallInteger" []
    /// Code points.
    CHARACTER 2 "Character" []
    /// Floats with a small exponent.
    SMALL_FLOAT 4 "SmallFloat64" []
    /// Integers below the SmallIntegers: the magnitude's bytes, lowest first.
    LARGE_NEGATIVE_INTEGER 32 "LargeNegativeInteger" []
    /// Integers above the SmallIntegers, likewise.
    LARGE_POSITIVE_INTEGER 33 "LargePositiveInteger" []
    /// All other Floats: 8 bytes.
    BOXED_FLOAT 34 "BoxedFloat64" []
    /// Argument of doesNotUnderstand:.
    MESSAGE 35 "Message" ["selector" "arguments"]
    /// A context token: names a frame.
    CONTEXT 36 "Context" ["frame" "stack"]
    /// A closure.
    BLOCK_CLOSURE 38 "BlockClosure" ["outerContext" "code" "numArgs" "receiver"]
    /// The root.
    OBJECT 40 "Object" []
    /// Superclass of Class and Metaclass.
    BEHAVIOR 41 "Behavior" ["superclass" "format" "classIndex" "name" "instanceVariableNames"]
    /// A class.
    CLASS 42 "Class" []
    /// A class's class.
    METACLASS 43 "Metaclass" []
    /// Class of nil.
    UNDEFINED_OBJECT 44 "UndefinedObject" []
    /// Class of true.
    TRUE 45 "True" []
    /// Class of false.
    FALSE 46 "False" []
    /// A key and a value.
    ASSOCIATION 47 "Association" ["key" "value"]
    /// Interned strings.
    SYMBOL 48 "Symbol" []
    /// Indexed references.
    ARRAY 51 "Array" []
    /// Bytes that are characters.
    STRING 52 "String" []
    /// Bytes that are integers.
    BYTE_ARRAY 53 "ByteArray" []
    /// A method.
    COMPILED_METHOD 54 "CompiledMethod" []
    /// A block's code.
    COMPILED_BLOCK 55 "CompiledBlock" []
    /// A process.
    PROCESS 56 "Process" ["nextLink" "stack" "priority" "myList" "name"]
    /// A semaphore.
    SEMAPHORE 57 "Semaphore" ["firstLink" "lastLink" "excessSignals"]
    /// Who runs, and who could.
    PROCESSOR_SCHEDULER 58 "ProcessorScheduler" ["quiescentProcessLists" "activeProcess"]
    /// A list of processes.
    LINKED_LIST 59 "LinkedList" ["firstLink" "lastLink"]
    /// A key and a value; the value lives only as long as the key.
    EPHEMERON 60 "Ephemeron" ["key" "value"]
    /// Indexed references that keep nothing alive.
    WEAK_ARRAY 61 "WeakArray" []
    /// Floats of both forms.
    FLOAT 62 "Float" []
    /// Exception for too deep recursion.
    STACK_OVERFLOW 63 "StackOverflow" []
    /// Exception for a too large heap.
    OUT_OF_MEMORY 64 "OutOfMemory" []
}

/// Class index of no class: the holder of what a root refers to.
pub const NO_CLASS: u32 = 0;
/// Class index of forwarders.
pub const FORWARDER: u32 = 8;
/// First class index unknown to the VM.
pub const FIRST_FREE: u32 = 96;
