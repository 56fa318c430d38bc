//! Continuations: the part of a virtual thread's stack that waits in the heap, and the queue of the
//! carrier that runs the thread (JDK 21 on).
//!
//! The collector moves objects while vmscope reads them: each object is asked for its class.

use std::ops::Range;

use rustc_hash::FxHashSet;
use vmscope_process::Memory;
use vmscope_records::Avma;

use crate::java_threads::JavaThreads;
use crate::layout::{Scalar, VmStructs};
use crate::method::MethodLayout;
use crate::objects::{Kind, Objects};

/// Maximum number of failed attempts to learn the classes.
const MAX_ATTEMPTS: u32 = 1_000;

/// Maximum number of known classes of continuations, and of carriers.
const MAX_KNOWN: usize = 1 << 10;

/// Maximum size of a chunk's stack in words.
const MAX_WORDS: u32 = 1 << 17;

const WHAT: &str = "continuation";

/// Reads continuations.
#[derive(Debug)]
pub(crate) struct Continuations {
    objects: Objects,
    layout_helper: Scalar,
    threads: JavaThreads,
    stack_base: Scalar,
    stack_size: Scalar,
    known: Option<Known>,
    queue: Option<QueueFields>,
    attempts: u32,
    /// Stacks of threads, and their `JavaThread`s.
    stacks: Vec<(Range<u64>, Avma)>,
}

/// Constant data, known from the first continuation.
#[derive(Clone, Debug)]
struct Known {
    kind: Kind,
    /// `Continuation` and subclasses.
    continuations: FxHashSet<Avma>,
    tail: u64,
    /// Class of stack chunks.
    chunk: Avma,
    parent: u64,
    size: u64,
    sp: u64,
    bottom: Bottom,
    /// The stack's offset in a chunk.
    stack: u64,
}

/// How a chunk tells the end of its frames.
#[derive(Clone, Copy, Debug)]
enum Bottom {
    /// As a place in the stack.
    At(u64),
    /// As the words of arguments behind it.
    Arguments(u64),
}

/// Constant data, known from the first carrier.
#[derive(Clone, Copy, Debug)]
struct QueueFields {
    /// Class of the carrier.
    carrier: Avma,
    queue: u64,
    base: u64,
    top: u64,
}

/// A stack chunk: frames in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The object.
    pub at: Avma,
    /// Stack pointer of its innermost frame.
    pub sp: Avma,
    /// End of its outermost frame.
    pub bottom: Avma,
    /// First word of the stack, and the end of the last.
    pub stack: (Avma, Avma),
    /// The chunk with the callers; 0 for none.
    pub parent: Avma,
}

impl Chunk {
    /// The chunk at `at` with these numbers: places of its innermost frame and of its bottom, and its
    /// size, in words of its stack.
    fn of(at: Avma, stack: Avma, (sp, bottom, size): (u32, u32, u32)) -> Option<Self> {
        if sp > bottom || bottom > size || size > MAX_WORDS {
            return None;
        }
        let word = |number: u32| stack.checked_add(8 * u64::from(number));
        Some(Chunk {
            at,
            sp: word(sp)?,
            bottom: word(bottom)?,
            stack: (stack, word(size)?),
            parent: Avma(0),
        })
    }

    /// Whether no frame is left.
    pub fn is_empty(&self) -> bool {
        self.sp == self.bottom
    }
}

/// Tasks that a carrier's own queue has got and given away: another number after each of its
/// virtual threads has come from or gone to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// The object.
    pub object: Avma,
    /// Number of tasks that were taken.
    pub base: u32,
    /// Number of tasks that were added.
    pub top: u32,
}

impl Continuations {
    /// Finds the fields; `None` if the tables lack one.
    pub fn find(structs: &VmStructs, methods: &MethodLayout) -> Option<Self> {
        let of_thread = |name| {
            let owners = ["JavaThread", "Thread"];
            owners
                .iter()
                .find_map(|one| structs.optional_scalar(one, name))
        };
        Some(Continuations {
            objects: Objects::find(structs, methods)?,
            layout_helper: structs.optional_scalar("Klass", "_layout_helper")?,
            threads: JavaThreads::find(structs).ok()?,
            stack_base: of_thread("_stack_base")?,
            stack_size: of_thread("_stack_size")?,
            known: None,
            queue: None,
            attempts: 0,
            stacks: Vec::new(),
        })
    }

    /// The newest chunk of the continuation at `at`; `None` without chunks or without a continuation.
    pub fn tail(&mut self, memory: &dyn Memory, at: Avma) -> Option<Chunk> {
        if self.known.is_none() {
            if self.attempts >= MAX_ATTEMPTS {
                return None;
            }
            self.attempts += 1;
            let learned = |kind| self.learn(memory, at, kind);
            self.known = self.objects.kinds().find_map(learned);
        }
        let known = self.known.as_ref()?;
        let class = self.objects.class_of(memory, at, known.kind.header)?;
        if !known.continuations.contains(&class) {
            self.objects.class_named(memory, class, CONTINUATION)?;
            let continuations = &mut self.known.as_mut()?.continuations;
            if continuations.len() < MAX_KNOWN {
                continuations.insert(class);
            }
        }
        let known = self.known.as_ref()?;
        let tail = self
            .objects
            .reference(memory, at, known.tail, known.kind.form)?;
        self.chunk(memory, tail)
    }

    /// The chunk at `at`.
    pub fn chunk(&self, memory: &dyn Memory, at: Avma) -> Option<Chunk> {
        let known = self.known.as_ref()?;
        let Kind { header, form } = known.kind;
        if self.objects.class_of(memory, at, header)? != known.chunk {
            return None;
        }
        let number = |by: u64| memory.read_u32(at.checked_add(by)?).ok();
        let size = number(known.size)?;
        let bottom = match known.bottom {
            Bottom::At(by) => number(by)?,
            Bottom::Arguments(by) => size.checked_sub(number(by)?)?,
        };
        let stack = at.checked_add(known.stack)?;
        let chunk = Chunk::of(at, stack, (number(known.sp)?, bottom, size))?;
        let parent = self.objects.reference(memory, at, known.parent, form);
        Some(Chunk {
            parent: parent.unwrap_or_default(),
            ..chunk
        })
    }

    fn learn(&self, memory: &dyn Memory, at: Avma, kind: Kind) -> Option<Known> {
        let (objects, Kind { header, form }) = (&self.objects, kind);
        let class = objects.class_of(memory, at, header)?;
        let continuation = objects.class_named(memory, class, CONTINUATION)?;
        let tail = objects.field(memory, continuation, "tail", "Ljdk/internal/vm/StackChunk;")?;
        let chunk = objects.reference(memory, at, tail, form)?;
        let chunk = objects.class_of(memory, chunk, header)?;
        if objects.class_named(memory, chunk, "jdk/internal/vm/StackChunk")? != chunk {
            return None;
        }
        let number = |name| objects.field(memory, chunk, name, "I");
        let bottom = number("bottom").map(Bottom::At);
        let bottom = bottom.or_else(|| number("argsize").map(Bottom::Arguments));
        // The size of an instance without its stack; the lowest bits are flags.
        let helper = self.layout_helper.read(memory, chunk, WHAT).ok()?;
        Some(Known {
            kind,
            continuations: FxHashSet::from_iter([class]),
            tail,
            chunk,
            parent: objects.field(memory, chunk, "parent", "Ljdk/internal/vm/StackChunk;")?,
            size: number("size")?,
            sp: number("sp")?,
            bottom: bottom?,
            stack: u64::try_from(helper).ok()? & !7,
        })
    }

    /// Queue of the carrier with `at` on its stack; `None` for carriers of schedulers other than the
    /// JDK's.
    pub fn queue(&mut self, memory: &dyn Memory, at: u64) -> Option<Queue> {
        let Kind { header, form } = self.known.as_ref()?.kind;
        let thread = self.thread_with(memory, at)?;
        let objects = &self.objects;
        let carrier = objects.of_thread(memory, thread, form)?;
        let class = objects.class_of(memory, carrier, header)?;
        let fields = match self.queue.filter(|fields| fields.carrier == class) {
            Some(fields) => fields,
            None => {
                let worker = "java/util/concurrent/ForkJoinWorkerThread";
                let worker = objects.class_named(memory, class, worker)?;
                let of = "Ljava/util/concurrent/ForkJoinPool$WorkQueue;";
                let names = ["workQueue", "queue"];
                let queue = names
                    .iter()
                    .find_map(|name| objects.field(memory, worker, name, of))?;
                let object = objects.reference(memory, carrier, queue, form)?;
                let of = objects.class_of(memory, object, header)?;
                let number = |name| objects.field(memory, of, name, "I");
                *self.queue.insert(QueueFields {
                    carrier: class,
                    queue,
                    base: number("base")?,
                    top: number("top")?,
                })
            }
        };
        let object = objects.reference(memory, carrier, fields.queue, form)?;
        let number = |by: u64| memory.read_u32(object.checked_add(by)?).ok();
        Some(Queue {
            object,
            base: number(fields.base)?,
            top: number(fields.top)?,
        })
    }

    /// The `JavaThread` with `at` on its stack.
    fn thread_with(&mut self, memory: &dyn Memory, at: u64) -> Option<Avma> {
        let known = self.stacks.iter().find(|(stack, _)| stack.contains(&at));
        if let Some((stack, thread)) = known
            && self.stack_of(memory, *thread).as_ref() == Some(stack)
        {
            return Some(*thread);
        }
        self.stacks.clear();
        let threads = self.threads.addresses(memory).ok()?;
        let stacks = threads
            .into_iter()
            .filter_map(|thread| Some((self.stack_of(memory, thread)?, thread)));
        self.stacks = stacks.collect();
        let mut stacks = self.stacks.iter();
        stacks
            .find(|(stack, _)| stack.contains(&at))
            .map(|(_, thread)| *thread)
    }

    fn stack_of(&self, memory: &dyn Memory, thread: Avma) -> Option<Range<u64>> {
        let base = self.stack_base.read_address(memory, thread, WHAT).ok()?.0;
        let size = self.stack_size.read_address(memory, thread, WHAT).ok()?.0;
        Some(base.checked_sub(size)?..base)
    }
}

const CONTINUATION: &str = "jdk/internal/vm/Continuation";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_its_places_in_order() {
        let of = |sp, bottom, size| Chunk::of(Avma(0x1000), Avma(0x1030), (sp, bottom, size));
        let chunk = of(2, 10, 12).unwrap();
        assert_eq!((chunk.sp, chunk.bottom), (Avma(0x1040), Avma(0x1080)));
        assert_eq!(chunk.stack, (Avma(0x1030), Avma(0x1090)));
        assert!(!chunk.is_empty() && of(10, 10, 12).unwrap().is_empty());
        assert_eq!(of(11, 10, 12), None);
        assert_eq!(of(2, 13, 12), None);
        assert_eq!(of(u32::MAX, 10, 12), None);
        assert_eq!(of(2, 10, u32::MAX), None);
        assert_eq!(of(2, 10, MAX_WORDS + 1), None);
        assert_eq!(Chunk::of(Avma(8), Avma(u64::MAX - 15), (1, 2, 3)), None);
    }
}
