/* A VM in C for the tests: it publishes what the test expects, and answers requests until its
 * standard input ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vmscope_publish.h"

static int collections;

static void describe(void *context, const vmscope_publisher *snapshot) {
    vmscope_boundary boundaries[] = {{4, 1}, {9, 3}};
    vmscope_case cases[] = {{{"Integer", 7}, 5, {"at:", 3}}, {{"Array", 5}, 0, {NULL, 0}}};
    vmscope_constituent made = VMSCOPE_INIT(vmscope_constituent);
    vmscope_listing listing[] = {{0, 4}, {1, 7}};
    vmscope_method method = VMSCOPE_INIT(vmscope_method);

    method.id = 5;
    method.class_name = vmscope_str("Array");
    method.name = vmscope_str((const char *)context);
    method.listing = listing;
    method.listing_count = 2;
    method.listing_text = vmscope_str("pushret");
    vmscope_method_known(snapshot, &method);

    made.id = 11;
    made.start = 0x1000;
    made.end = 0x1040;
    made.kind = VMSCOPE_METHOD;
    made.name = vmscope_str("Array>>at:");
    made.method = 5;
    made.map = VMSCOPE_MAP_BOUNDARY;
    made.boundary_rule = VMSCOPE_AFTER_INSTRUCTION;
    made.boundary_exactness = VMSCOPE_EXACT;
    made.boundaries = boundaries;
    made.boundary_count = 2;
    made.cases = cases;
    made.case_count = 2;
    vmscope_constituent_made(snapshot, &made);
    /* A struct of an unknown, smaller version is left out. */
    made.size = 8;
    vmscope_constituent_made(snapshot, &made);
    vmscope_constituent_made(snapshot, NULL);
    /* No publisher. */
    vmscope_poll(snapshot, NULL);
}

static void collect(void *context) {
    (void)context;
    collections++;
}

/* Publishes for ever. */
static void *busy(void *publisher) {
    uint64_t id = 1;
    for (;; id++)
        vmscope_constituent_moved((const vmscope_publisher *)publisher, id, id * 3);
    return NULL;
}

/* The sampler from C: 0 if all is as it should be. */
static int sample(vmscope_publisher *publisher) {
    vmscope_sampler_options options = VMSCOPE_INIT(vmscope_sampler_options);
    vmscope_sampler_status status = VMSCOPE_INIT(vmscope_sampler_status);
    vmscope_stack stack = {0, 0};

    if (vmscope_register_thread(publisher, VMSCOPE_THREAD_MUTATOR, vmscope_str("main"), &stack, 1))
        return 1;
    if (vmscope_sampler_start(publisher, NULL) != -1 ||
        vmscope_sampler_start(publisher, &options))
        return 2;
    do {
        if (vmscope_sampler_status_now(publisher, &status) || status.size != sizeof(status))
            return 3;
    } while (status.ticks < 3);
    if (status.state != VMSCOPE_RUNNING || status.priority == VMSCOPE_PRIORITY_NONE ||
        status.period_ns != 713927)
        return 4;
    vmscope_sampler_stop(publisher);
    vmscope_sampler_clear(publisher);
    vmscope_unregister_thread(publisher);
    vmscope_sampler_status_now(publisher, &status);
    return status.state == VMSCOPE_STOPPED ? 0 : 5;
}

int main(int argc, char **argv) {
    vmscope_options options = VMSCOPE_INIT(vmscope_options);
    vmscope_callbacks callbacks = VMSCOPE_INIT(vmscope_callbacks);
    vmscope_publisher *publisher;
    uint64_t round;

    options.name = vmscope_str("toy");
    options.version = vmscope_str("0.1");
    options.stream_bytes = 1;
    if (vmscope_open(NULL) || !vmscope_now())
        return 1;
    options.stream_bytes = UINT64_MAX;
    if (vmscope_open(&options))
        return 2;
    options.stream_bytes = 1 << 20;
    publisher = vmscope_open(&options);
    if (!publisher)
        return 3;
    if (sample(publisher))
        return 4;
    callbacks.context = (void *)"at:";
    callbacks.describe = describe;
    callbacks.collect = collect;
    vmscope_constituent_gone(NULL, 1, VMSCOPE_GONE_FREED);
    if (argc > 1 && !strcmp(argv[1], "busy")) {
        pthread_t thread;
        pthread_create(&thread, NULL, busy, publisher);
        pthread_create(&thread, NULL, busy, publisher);
    }
    puts("ready");
    fflush(stdout);
    for (round = 1;; round++) {
        char byte;
        vmscope_poll(publisher, &callbacks);
        if (collections) {
            vmscope_space spaces[] = {{{"eden", 4}, 100, VMSCOPE_UNKNOWN}};
            vmscope_collected collected = {
                sizeof collected, 9, spaces, 1, 50, VMSCOPE_UNKNOWN, 3, 1000};
            vmscope_birth birth = {1, 2, 3, 0, 24, VMSCOPE_UNKNOWN, 1.0};
            vmscope_births(publisher, 77, &birth, 1);
            vmscope_collection_end(publisher, &collected);
            vmscope_constituent_moved(publisher, 11, 0x2000);
            vmscope_constituent_gone(publisher, 11, VMSCOPE_GONE_FLUSHED);
            collections = 0;
        }
        /* The test's command to go on, or its end. */
        if (read(0, &byte, 1) != 1)
            break;
    }
    vmscope_close(publisher);
    return 0;
}
