/* A toy VM that tells vmscope about its code. Its methods have three bytecodes, each a loop; a
 * "compiler" turns them into machine code (x86-64), and now and then recompiles one elsewhere.
 *
 *     cc -Iinclude toy_jit.c libvmscope_publish.a -lpthread -ldl -lm -o toy_jit
 *     vmscope record -- ./toy_jit 5
 *     ./toy_jit 60 sample & sleep 2; vmscope attach --engine in-vm $!
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmscope_publish.h"

enum { METHODS = 3, BYTECODES = 3, ZONE = 1 << 16 };

struct method {
    const char *name;
    uint32_t turns[BYTECODES]; /* of each bytecode's loop: its share of the time */
    uint64_t code_id, start, end;
    vmscope_boundary map[BYTECODES];
};

static struct method methods[METHODS] = {
    {"small", {1000, 2000, 3000}, 0, 0, 0, {{0, 0}}},
    {"large", {2000, 4000, 12000}, 0, 0, 0, {{0, 0}}},
    {"empty", {1000, 1000, 4000}, 0, 0, 0, {{0, 0}}},
};
static unsigned char *zone;
static size_t used;
static uint64_t last_id;

/* Says which code there is. A describe callback says it of all of it. */
static void publish_code(const vmscope_publisher *to, const struct method *method) {
    vmscope_constituent code = VMSCOPE_INIT(vmscope_constituent);
    code.id = method->code_id;
    code.start = method->start;
    code.end = method->end;
    code.kind = VMSCOPE_METHOD;
    code.tier = vmscope_str("baseline");
    code.name = vmscope_str(method->name);
    code.method = (uint64_t)(method - methods) + 1;
    code.map = VMSCOPE_MAP_BOUNDARY;
    code.boundary_rule = VMSCOPE_AT_START;
    code.boundary_exactness = VMSCOPE_EXACT;
    code.boundaries = method->map;
    code.boundary_count = BYTECODES;
    vmscope_constituent_made(to, &code);
}

static void publish_method(const vmscope_publisher *to, const struct method *method) {
    vmscope_listing listing[BYTECODES] = {{0, 5}, {1, 10}, {2, 15}};
    vmscope_method known = VMSCOPE_INIT(vmscope_method);
    known.id = (uint64_t)(method - methods) + 1;
    known.name = vmscope_str(method->name);
    known.listing = listing;
    known.listing_count = BYTECODES;
    known.listing_text = vmscope_str("loop0loop1loop2");
    vmscope_method_known(to, &known);
}

static void describe(void *context, const vmscope_publisher *snapshot) {
    (void)context;
    for (int i = 0; i < METHODS; i++) {
        publish_method(snapshot, &methods[i]);
        publish_code(snapshot, &methods[i]);
    }
}

/* Compiles a method to the next free place; the zone is a ring. */
static void compile(const vmscope_publisher *publisher, struct method *method) {
    uint64_t old = method->code_id;
    if (used + 64 > ZONE)
        used = 0;
    unsigned char *at = zone + used;
    method->start = (uint64_t)at;
    memcpy(at, "\x55\x48\x89\xe5", 4); /* push rbp; mov rbp, rsp */
    at += 4;
    for (uint32_t i = 0; i < BYTECODES; i++) {
        method->map[i].offset = (uint32_t)((uint64_t)at - method->start);
        method->map[i].bytecode = i;
        *at = 0xb9; /* mov ecx, turns */
        memcpy(at + 1, &method->turns[i], 4);
        memcpy(at + 5, "\xff\xc9\x75\xfc", 4); /* dec ecx; jnz back to dec */
        at += 9;
    }
    memcpy(at, "\x5d\xc3", 2); /* pop rbp; ret */
    method->end = (uint64_t)at + 2;
    used += 64;
    method->code_id = ++last_id;
    publish_code(publisher, method);
    if (old)
        vmscope_constituent_gone(publisher, old, VMSCOPE_GONE_FREED);
}

int main(int argc, char **argv) {
    vmscope_options options = VMSCOPE_INIT(vmscope_options);
    vmscope_callbacks callbacks = VMSCOPE_INIT(vmscope_callbacks);
    uint64_t end = vmscope_now() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 5) * 1000000000ull;
    options.name = vmscope_str("toy");
    options.version = vmscope_str("1.0");
    vmscope_publisher *publisher = vmscope_open(&options);
    callbacks.describe = describe;
    zone = mmap(NULL, ZONE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!publisher || zone == MAP_FAILED)
        return 1;
    if (argc > 2) { /* its own sampler, for profilers to come */
        vmscope_sampler_options sampler = VMSCOPE_INIT(vmscope_sampler_options);
        vmscope_sampler_start(publisher, &sampler);
    }
    vmscope_register_thread(publisher, VMSCOPE_THREAD_MUTATOR, vmscope_str("toy"), NULL, 0);
    for (int i = 0; i < METHODS; i++) {
        publish_method(publisher, &methods[i]);
        compile(publisher, &methods[i]);
    }
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (unsigned round = 1; vmscope_now() < end; round++) {
        for (int i = 0; i < METHODS; i++)
            ((void (*)(void))methods[i].start)();
        if (round % 1000 == 0) /* now and then, code moves */
            compile(publisher, &methods[round / 1000 % METHODS]);
        vmscope_poll(publisher, &callbacks); /* a safe point */
    }
    vmscope_unregister_thread(publisher);
    vmscope_close(publisher);
    return 0;
}
