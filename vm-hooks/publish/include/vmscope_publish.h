/* The functions by which a VM describes itself to vmscope.
 *
 * Link libvmscope_publish.a (or .so), open one publisher early, call one function for each event,
 * and call vmscope_poll at safe points. All functions may be called from any thread. While no
 * profiler listens, a function costs one load and a branch. No function blocks, allocates or fails,
 * except vmscope_open, vmscope_regions and the sampler's functions. In a forked child, the
 * functions do nothing.
 *
 * - Ids are your own numbers. Never give the same id to two things of a sort. 0 means "none".
 * - Change your own tables first, then publish. Only this order gives late profilers an exact
 *   description of all existing things.
 * - Times are nanoseconds of CLOCK_MONOTONIC; vmscope_now() returns the current time.
 * - A struct begins with its size: VMSCOPE_INIT(struct) sets the size, and zeroes the other fields.
 *   A library accepts the structs of older headers. Events smaller than the first version's struct
 *   are left out.
 * - Texts are UTF-8 and need no end mark; vmscope_str() converts a C string. Pointers need to be
 *   valid during the call only. Null pointers are empty texts and lists.
 */
#ifndef VMSCOPE_PUBLISH_H
#define VMSCOPE_PUBLISH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the shared memory. */
#define VMSCOPE_MAJOR 2
#define VMSCOPE_MINOR 0

/* An unknown number. */
#define VMSCOPE_UNKNOWN UINT64_MAX
/* No number: no on-stack replacement, no enclosing phase, any thread role. */
#define VMSCOPE_NONE UINT32_MAX

#define VMSCOPE_INIT(type) {sizeof(type)}

typedef struct vmscope_publisher vmscope_publisher;

typedef struct vmscope_text {
    const char *bytes;
    size_t length;
} vmscope_text;

static inline vmscope_text vmscope_str(const char *string) {
    vmscope_text text;
    text.bytes = string;
    text.length = string ? strlen(string) : 0;
    return text;
}

/* ---- A publisher ---- */

typedef struct vmscope_options {
    size_t size;
    vmscope_text name;             /* the VM's name */
    vmscope_text version;          /* and version; 64 bytes each */
    uint64_t stream_bytes;         /* ring of events; 0: 8 MiB */
    uint64_t sample_bytes;         /* ring of samples; 0: 1 MiB */
    uint64_t snapshot_patience_ns; /* longest wait of a snapshot for its readers; 0: none.
                                      200 ms is a good choice */
} vmscope_options;

/* A new publisher, or NULL if its memory cannot be made or a size is out of range. */
vmscope_publisher *vmscope_open(const vmscope_options *options);
/* Closes the publisher. No thread may use the publisher during or after the call. */
void vmscope_close(vmscope_publisher *publisher);
/* 1 while a profiler listens. Ask before you gather the data of an event. */
int vmscope_listening(const vmscope_publisher *publisher);
/* Checks the profilers' leases; 1 if a profiler still listens. Only VMs that publish rarely need
 * this call. */
int vmscope_check_listeners(const vmscope_publisher *publisher);
/* If a profiler has started this process, waits until the profiler has read all that was published so
 * far, at most for `longest` nanoseconds. Call it once, after the first events and before the program.
 * 1 if the profiler is there. */
int vmscope_await_profiler(const vmscope_publisher *publisher, uint64_t longest);
uint64_t vmscope_now(void);

/* Callbacks from the library to the VM, inside vmscope_poll, on the polling thread, never two at a
 * time. Each callback may be NULL. Callbacks must return normally, not by exceptions or longjmp. */
typedef struct vmscope_callbacks {
    size_t size;
    void *context;
    /* Publish all existing things, to `snapshot` in place of the publisher. Other threads may go on
     * publishing meanwhile. */
    void (*describe)(void *context, const vmscope_publisher *snapshot);
    /* Collect garbage now, in full. */
    void (*collect)(void *context);
    /* Publish lifetimes of sampled objects, with a mean distance of `distance` objects (or bytes)
     * between samples; 0: no lifetimes. A VM without the unit samples objects at random distances.
     * An allocation site has `callers` callers, 0 to 31. */
    void (*lifetime_rate)(void *context, uint32_t unit, uint64_t distance, uint32_t callers);
} vmscope_callbacks;

enum {
    VMSCOPE_RATE_OBJECTS = 0, /* objects, at random distances */
    VMSCOPE_RATE_BYTES = 1,   /* bytes, at random distances */
    VMSCOPE_RATE_EVERY_NTH = 2,
    VMSCOPE_RATE_WINDOWS = 3, /* all objects of one window of every n */
    VMSCOPE_RATE_THREADS = 4, /* objects, at random distances of each thread */
    VMSCOPE_RATE_BUFFERS = 5  /* bytes: the first object of each allocation buffer */
};

/* Answers profilers' requests. Call vmscope_poll at safe points. Without requests, the call costs
 * one load and a branch. Without callbacks, or without `describe`, a late profiler knows only
 * things published after it attached. */
void vmscope_poll(const vmscope_publisher *publisher, const vmscope_callbacks *callbacks);

/* ---- Code ---- */

/* Types of constituents. */
enum {
    VMSCOPE_OTHER = 0, /* another type, named by kind_word */
    VMSCOPE_METHOD = 1,
    VMSCOPE_BLOCK = 2,
    VMSCOPE_CLOSED_PIC = 3,
    VMSCOPE_OPEN_PIC = 4,
    VMSCOPE_TRAMPOLINE = 5, /* called from generated code */
    VMSCOPE_ENILOPMART = 6, /* enters generated code from the VM */
    VMSCOPE_STUB = 7,
    VMSCOPE_INTERPRETER = 8, /* generated interpreter code; the name begins with the bytecode's */
    VMSCOPE_ADAPTER = 9,
    VMSCOPE_REGEXP = 10,
    VMSCOPE_BYTECODES = 11,     /* a method's bytecodes: data */
    VMSCOPE_METHOD_OBJECT = 12, /* the VM's method object: data */
    VMSCOPE_FREE = 13
};

/* Meaning of a boundary's address. */
enum {
    VMSCOPE_AFTER_INSTRUCTION = 0, /* after a bytecode's last instruction (return addresses) */
    VMSCOPE_AT_START = 1           /* a bytecode's first instruction */
};

/* Reliability of a map. */
enum { VMSCOPE_METHOD_ONLY = 0, VMSCOPE_APPROXIMATE = 1, VMSCOPE_EXACT = 2 };

/* Meaning of a chain frame's value. */
enum { VMSCOPE_POSITION_UNKNOWN = 0, VMSCOPE_POSITION_BYTECODE = 1, VMSCOPE_POSITION_LINE = 2 };

/* Kinds of maps. */
enum { VMSCOPE_MAP_NONE = 0, VMSCOPE_MAP_BOUNDARY = 1, VMSCOPE_MAP_COVERS = 2 };

typedef struct vmscope_boundary {
    uint32_t offset; /* from the constituent's start */
    uint32_t bytecode;
} vmscope_boundary;

typedef struct vmscope_cover {
    uint32_t start, end;   /* offsets from the constituent's start */
    uint32_t first, count; /* its chain in the map's frames, innermost first */
    uint32_t exactness;
} vmscope_cover;

typedef struct vmscope_chain_frame {
    uint64_t method;
    uint32_t position; /* VMSCOPE_POSITION_… */
    uint32_t value;
} vmscope_chain_frame;

typedef struct vmscope_case {
    vmscope_text class_name;
    uint64_t method; /* target; 0: unknown */
    vmscope_text target;
} vmscope_case;

/* Maximum number of cases kept of a PIC. */
#define VMSCOPE_MOST_CASES 64

typedef struct vmscope_constituent {
    size_t size;
    uint64_t id;
    uint64_t start; /* first address */
    uint64_t end;   /* first address after the code */
    uint64_t since; /* creation time; 0: now */
    uint32_t kind;
    uint32_t map; /* VMSCOPE_MAP_…: selects the lists below */
    vmscope_text kind_word;
    vmscope_text tier;
    vmscope_text name;
    uint64_t method;
    const vmscope_case *cases;
    size_t case_count;
    /* A boundary map, ascending. */
    const vmscope_boundary *boundaries;
    size_t boundary_count;
    uint32_t boundary_rule;
    uint32_t boundary_exactness;
    /* A covers map, ascending. */
    const vmscope_cover *covers;
    size_t cover_count;
    const vmscope_chain_frame *frames;
    size_t frame_count;
} vmscope_constituent;

/* A new constituent, or later data about a known one. */
void vmscope_constituent_made(const vmscope_publisher *publisher, const vmscope_constituent *made);

/* Reasons of removal. */
enum {
    VMSCOPE_GONE_UNKNOWN = 0,
    VMSCOPE_GONE_FREED = 1,
    VMSCOPE_GONE_RECYCLED = 2,
    VMSCOPE_GONE_FLUSHED = 3,
    VMSCOPE_GONE_UNLOADED = 4
};

void vmscope_constituent_gone(const vmscope_publisher *publisher, uint64_t id, uint32_t reason);
void vmscope_constituent_moved(const vmscope_publisher *publisher, uint64_t id, uint64_t to);
void vmscope_cases_changed(const vmscope_publisher *publisher, uint64_t id,
                           const vmscope_case *cases, size_t count);

typedef struct vmscope_line {
    uint32_t bytecode;
    uint32_t line; /* 1-based */
} vmscope_line;

typedef struct vmscope_listing {
    uint32_t bytecode;
    uint32_t end; /* end of the entry's text in listing_text; the start is the previous end */
} vmscope_listing;

typedef struct vmscope_method {
    size_t size;
    uint64_t id;
    vmscope_text class_name;
    vmscope_text name;
    vmscope_text file;
    const vmscope_line *lines;
    size_t line_count;
    const uint8_t *bytecodes;
    size_t bytecode_count;
    const vmscope_listing *listing; /* printable forms of the bytecodes */
    size_t listing_count;
    vmscope_text listing_text;
    uint32_t line; /* first line; 0: unknown */
    uint32_t reserved;
} vmscope_method;

void vmscope_method_known(const vmscope_publisher *publisher, const vmscope_method *method);
void vmscope_class_known(const vmscope_publisher *publisher, uint64_t id, vmscope_text name);

/* ---- Threads and compilers ---- */

/* Roles. */
enum {
    VMSCOPE_THREAD_OTHER = 0,
    VMSCOPE_THREAD_MUTATOR = 1,
    VMSCOPE_THREAD_COLLECTOR = 2,
    VMSCOPE_THREAD_COMPILER = 3,
    VMSCOPE_THREAD_HEARTBEAT = 4,
    VMSCOPE_THREAD_VM = 5
};

void vmscope_thread_known(const vmscope_publisher *publisher, uint32_t tid, uint32_t role,
                          vmscope_text name);
void vmscope_thread_gone(const vmscope_publisher *publisher, uint32_t tid);

typedef struct vmscope_compilation {
    size_t size;
    uint64_t number; /* the VM's own; 0: none */
    uint64_t method; /* 0: unknown */
    vmscope_text name;
    vmscope_text tier;
    uint32_t tid;
    uint32_t osr_bytecode; /* VMSCOPE_NONE without on-stack replacement */
} vmscope_compilation;

void vmscope_compilation_begin(const vmscope_publisher *publisher,
                               const vmscope_compilation *compilation);
void vmscope_compilation_end(const vmscope_publisher *publisher, uint32_t tid);

/* ---- The heap ---- */

/* Extent of a collection. */
enum { VMSCOPE_CYCLE = 0, VMSCOPE_WHOLE = 1, VMSCOPE_CYCLE_PAUSE = 2 };

typedef struct vmscope_space {
    vmscope_text name;
    uint64_t used;     /* bytes, or VMSCOPE_UNKNOWN */
    uint64_t capacity; /* bytes, or VMSCOPE_UNKNOWN */
} vmscope_space;

/* Maximum number of spaces kept of a collection. */
#define VMSCOPE_MOST_SPACES 32

typedef struct vmscope_collection {
    size_t size;
    uint64_t id;
    vmscope_text collector;
    vmscope_text kind;
    vmscope_text cause;
    const vmscope_space *spaces;
    size_t space_count;
    uint32_t scope;
    uint32_t reserved;
} vmscope_collection;

void vmscope_collection_begin(const vmscope_publisher *publisher,
                              const vmscope_collection *collection);

/* The end of a collection. Numbers may be VMSCOPE_UNKNOWN. */
typedef struct vmscope_collected {
    size_t size;
    uint64_t id;
    const vmscope_space *spaces;
    size_t space_count;
    uint64_t survived_bytes;
    uint64_t tenured_bytes;
    uint64_t survived_objects;
    uint64_t cpu_ns; /* CPU time of the collector's threads */
} vmscope_collected;

void vmscope_collection_end(const vmscope_publisher *publisher,
                            const vmscope_collected *collected);

typedef struct vmscope_phase {
    size_t size;
    uint64_t collection;
    vmscope_text name;
    uint32_t phase;          /* number in the collection, from 0 */
    uint32_t within;         /* enclosing phase, or VMSCOPE_NONE */
    uint32_t stop_the_world; /* 1 if the phase stops all mutators */
    uint32_t tid;            /* the phase's thread; 0 unless it has a single thread */
} vmscope_phase;

void vmscope_phase_begin(const vmscope_publisher *publisher, const vmscope_phase *phase);
void vmscope_phase_end(const vmscope_publisher *publisher, uint64_t collection, uint32_t phase);

typedef struct vmscope_site_frame {
    uint64_t method;
    uint32_t bytecode;
    uint32_t reserved;
} vmscope_site_frame;

/* An allocation site: the method and, optionally, its callers. */
void vmscope_site_known(const vmscope_publisher *publisher, uint64_t id,
                        const vmscope_site_frame *frames, size_t count);

typedef struct vmscope_birth {
    uint64_t time;
    uint64_t object;
    uint64_t class_id;
    uint64_t site;
    uint64_t bytes;
    uint64_t allocated_bytes; /* by the process before this object, or VMSCOPE_UNKNOWN */
    double weight;            /* number of objects represented by this object */
} vmscope_birth;

typedef struct vmscope_survival {
    uint64_t time;
    uint64_t object;
    uint64_t tenured; /* 1 if the collection tenured the object */
    uint64_t holder;  /* class id of the object that led to it; 0 if unknown or a root */
} vmscope_survival;

typedef struct vmscope_death {
    uint64_t time;
    uint64_t object;
} vmscope_death;

typedef struct vmscope_survival_bucket {
    uint64_t scavenges, fulls; /* survived */
    uint64_t objects, bytes;   /* died afterwards */
    uint64_t alive_objects, alive_bytes;
} vmscope_survival_bucket;

void vmscope_births(const vmscope_publisher *publisher, uint32_t tid, const vmscope_birth *births,
                    size_t count);
void vmscope_survivals(const vmscope_publisher *publisher, uint64_t collection,
                       const vmscope_survival *survivals, size_t count);
void vmscope_deaths(const vmscope_publisher *publisher, uint64_t collection,
                    const vmscope_death *deaths, size_t count);
/* Counts of all objects of a class and a site so far; replaces earlier counts. */
void vmscope_lifetimes(const vmscope_publisher *publisher, uint64_t class_id, uint64_t site,
                       uint64_t objects, uint64_t bytes, const vmscope_survival_bucket *buckets,
                       size_t count);

/* ---- Figures ---- */

enum { VMSCOPE_GAUGE = 0, VMSCOPE_TOTAL = 1 };

typedef struct vmscope_counter {
    size_t size;
    vmscope_text section;
    vmscope_text name;
    vmscope_text unit;
    double value;
    uint32_t meaning;
    uint32_t reserved;
} vmscope_counter;

void vmscope_counter_read(const vmscope_publisher *publisher, const vmscope_counter *counter);
void vmscope_fact(const vmscope_publisher *publisher, vmscope_text name, vmscope_text value);

/* ---- The VM's native code ---- */

typedef struct vmscope_range {
    uint64_t start, end;
} vmscope_range;

enum { VMSCOPE_IN_REGISTER = 0, VMSCOPE_ON_STACK = 1 };
enum { VMSCOPE_HOLDS_BYTECODE = 0, VMSCOPE_HOLDS_METHOD = 1, VMSCOPE_HOLDS_CALLER = 2 };

typedef struct vmscope_interpreter_source {
    uint32_t place;
    uint32_t reg; /* numbered as in the kernel's perf_regs.h */
    int32_t offset;
    uint32_t holds;
} vmscope_interpreter_source;

/* How the interpreter shows its current bytecode: at most 64 ranges and 32 sources. */
void vmscope_interpreter(const vmscope_publisher *publisher, const vmscope_range *ranges,
                         size_t range_count, const vmscope_interpreter_source *sources,
                         size_t source_count);

/* Frames of interpreted methods that share the stack of machine code, with one chain of frame
 * pointers (0 in a stack's first frame): machine code returns to interpreted callers at
 * `interpreted_return`, inside machine code; the word at frame pointer + `next` (bytes) of an
 * interpreted frame is the address of its next bytecode. */
void vmscope_frames(const vmscope_publisher *publisher, uint64_t interpreted_return, int32_t next);

enum {
    VMSCOPE_REGION_UNKNOWN = 0,
    VMSCOPE_REGION_GENERATED = 1,
    VMSCOPE_REGION_INTERPRETER = 2,
    VMSCOPE_REGION_GC = 3,
    VMSCOPE_REGION_COMPILER = 4,
    VMSCOPE_REGION_VM = 5,
    VMSCOPE_REGION_LIBRARY = 6
};

/* Functions of one module belong to a region. All conditions must hold; empty conditions
 * always hold. */
typedef struct vmscope_region_rule {
    vmscope_text module;
    vmscope_text identifiers;
    vmscope_text prefix;
    vmscope_text contains;
    vmscope_text suffix;
    vmscope_text part;
    uint32_t role; /* of the sampled thread, or VMSCOPE_NONE */
    uint32_t region;
    uint32_t strip; /* 1: names are shown without prefix and suffix */
    uint32_t reserved;
} vmscope_region_rule;

void vmscope_regions(const vmscope_publisher *publisher, const vmscope_region_rule *rules,
                     size_t count);

/* ---- The sampler inside the VM ----
 *
 * A thread of high priority signals the running registered threads, with SIGPROF unless the VM sets
 * another signal first. Signals of other senders go to the previous handler. Samples stay in the
 * shared memory for a profiler that attaches later. */

typedef struct vmscope_stack {
    uint64_t start, end; /* first address, first address after the stack */
} vmscope_stack;

typedef struct vmscope_sampler_options {
    size_t size;
    uint64_t period_ns;   /* mean time between ticks; 0: 713,927 */
    uint32_t chains;      /* 1: return addresses, found by following frame pointers */
    uint32_t keep_oldest; /* 1: a full ring keeps the oldest samples; 0: the newest */
} vmscope_sampler_options;

enum { VMSCOPE_STOPPED = 0, VMSCOPE_RUNNING = 1 };
enum {
    VMSCOPE_PRIORITY_NONE = 0,
    VMSCOPE_PRIORITY_REAL_TIME = 1,
    VMSCOPE_PRIORITY_NICE = 2,
    VMSCOPE_PRIORITY_NORMAL = 3
};

typedef struct vmscope_sampler_status {
    size_t size; /* set by the caller */
    uint64_t period_ns;
    uint64_t ticks;
    uint64_t late;    /* ticks left out because they came too late */
    uint64_t refused; /* samples refused by a full ring that keeps the oldest */
    uint64_t cpu_ns;  /* CPU time of the sampler's thread */
    uint32_t state;
    uint32_t priority; /* of the sampler's thread */
    int32_t nice;
    uint32_t reserved;
} vmscope_sampler_status;

/* Registers the calling thread, and publishes the thread. The thread may run on its own stack and
 * three further stacks, which must stay readable. Returns 0, or -1 on failure, for example
 * with too many threads. */
int vmscope_register_thread(const vmscope_publisher *publisher, uint32_t role, vmscope_text name,
                            const vmscope_stack *stacks, size_t count);
/* Call vmscope_unregister_thread before the thread ends. */
void vmscope_unregister_thread(const vmscope_publisher *publisher);
/* Sets the sampler's signal. Call it before the first start in the process. */
void vmscope_sampler_signal(const vmscope_publisher *publisher, int signal);
/* Returns 0, or -1 if another publisher samples, the signal's handler cannot be installed, or the
 * thread cannot be started. */
int vmscope_sampler_start(const vmscope_publisher *publisher,
                          const vmscope_sampler_options *options);
void vmscope_sampler_stop(const vmscope_publisher *publisher);
void vmscope_sampler_clear(const vmscope_publisher *publisher);
/* Returns 0, or -1 if the struct is too small. */
int vmscope_sampler_status_now(const vmscope_publisher *publisher, vmscope_sampler_status *status);

#ifdef __cplusplus
}
#endif
#endif
