/*
 * What a JVM says about its own compiled code: a JVMTI agent for tests, which compare it
 * with what is read from outside.
 *
 * At run time (`load` by the attach protocol) it writes all that there is now to the file
 * that its options name, and lets go of the JVM again. At start (-agentpath) it does
 * nothing but want CompiledMethodLoad events: the JVM then records debug information as
 * with DebugNonSafepoints (so an agent that is loaded later does not influence what it
 * reports).
 *
 * The file: one record a line, words separated by spaces, names last; numbers are
 * hexadecimal if they are addresses or methods, else decimal. A method is told before it
 * is referred to.
 *
 *   method ID FLAGS CLASS NAME SIGNATURE SOURCE LINES
 *                     CLASS as the JVM has it, "Ljava/lang/String;"; SOURCE its file or "-";
 *                     LINES "BCI:LINE,BCI:LINE,..." as GetLineNumberTable has them, or "-"
 *   nmethod ADDRESS SIZE ID
 *                     CompiledMethodLoad: where its code is, with out-of-line stubs
 *                     (without them in JDK 11)
 *   pc PC ID:BCI ID:BCI ...
 *                     a record of the nmethod before, JVMTI_CMLR_INLINE_INFO: innermost first
 *   outer ADDRESS BCI of the address location map of the nmethod before: the outermost bci
 *   stub ADDRESS SIZE NAME
 *                     DynamicCodeGenerated
 *   failed WHAT ERROR something that JVMTI refused
 *   end               the file is whole
 */
#include <jvmti.h>
#include <jvmticmlr.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compilers tell of what they have just made while all that there is is told. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;

/* Methods that were told already: open addressing, a power of two, half empty. */
static jmethodID *told;
static size_t told_size, told_count;

static int failed(const char *what, jvmtiError error) {
    if (error != JVMTI_ERROR_NONE && file)
        fprintf(file, "failed %s %d\n", what, (int)error);
    return error != JVMTI_ERROR_NONE;
}

static size_t slot_of(jmethodID method) {
    size_t at = ((uintptr_t)method >> 3) * 0x9E3779B97F4A7C15u & (told_size - 1);
    while (told[at] && told[at] != method)
        at = (at + 1) & (told_size - 1);
    return at;
}

/* Whether this is the first time. */
static int is_new(jmethodID method) {
    if (2 * (told_count + 1) > told_size) {
        jmethodID *old = told;
        size_t size = told_size;
        told_size = size ? 2 * size : 4096;
        told = calloc(told_size, sizeof *told);
        if (!told)
            abort();
        for (size_t i = 0; i < size; i++)
            if (old[i])
                told[slot_of(old[i])] = old[i];
        free(old);
    }
    size_t at = slot_of(method);
    if (told[at])
        return 0;
    told[at] = method;
    told_count++;
    return 1;
}

static void tell_method(jvmtiEnv *jvmti, jmethodID method) {
    char *name = NULL, *signature = NULL, *class_name = NULL, *source = NULL;
    jclass declaring = NULL;
    jvmtiLineNumberEntry *lines = NULL;
    jint count = 0;
    jboolean native = JNI_FALSE;
    if (!is_new(method))
        return;
    if (failed("GetMethodName", (*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL)))
        return;
    if (!failed("GetMethodDeclaringClass",
                (*jvmti)->GetMethodDeclaringClass(jvmti, method, &declaring))) {
        failed("GetClassSignature",
               (*jvmti)->GetClassSignature(jvmti, declaring, &class_name, NULL));
        /* Absent is no failure. */
        (*jvmti)->GetSourceFileName(jvmti, declaring, &source);
    }
    (*jvmti)->IsMethodNative(jvmti, method, &native);
    (*jvmti)->GetLineNumberTable(jvmti, method, &count, &lines);
    fprintf(file, "method %llx %s %s %s %s %s ", (unsigned long long)(uintptr_t)method,
            native ? "native" : "-", class_name ? class_name : "?", name, signature,
            source ? source : "-");
    if (count == 0)
        fputc('-', file);
    for (jint i = 0; i < count; i++)
        fprintf(file, "%s%d:%d", i ? "," : "", (int)lines[i].start_location,
                (int)lines[i].line_number);
    fputc('\n', file);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)class_name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)source);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)lines);
}

static void tell_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *address,
                          jint map_length, const jvmtiAddrLocationMap *map,
                          const jvmtiCompiledMethodLoadRecordHeader *header) {
    tell_method(jvmti, method);
    for (const jvmtiCompiledMethodLoadRecordHeader *one = header; one; one = one->next) {
        if (one->kind != JVMTI_CMLR_INLINE_INFO)
            continue;
        const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)one;
        for (jint i = 0; i < inlined->numpcs; i++)
            for (jint k = 0; k < inlined->pcinfo[i].numstackframes; k++)
                tell_method(jvmti, inlined->pcinfo[i].methods[k]);
    }
    fprintf(file, "nmethod %llx %d %llx\n", (unsigned long long)(uintptr_t)address, (int)size,
            (unsigned long long)(uintptr_t)method);
    for (const jvmtiCompiledMethodLoadRecordHeader *one = header; one; one = one->next) {
        if (one->kind != JVMTI_CMLR_INLINE_INFO)
            continue;
        const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)one;
        for (jint i = 0; i < inlined->numpcs; i++) {
            const PCStackInfo *info = &inlined->pcinfo[i];
            fprintf(file, "pc %llx", (unsigned long long)(uintptr_t)info->pc);
            for (jint k = 0; k < info->numstackframes; k++)
                fprintf(file, " %llx:%d", (unsigned long long)(uintptr_t)info->methods[k],
                        (int)info->bcis[k]);
            fputc('\n', file);
        }
    }
    for (jint i = 0; i < map_length; i++)
        fprintf(file, "outer %llx %d\n", (unsigned long long)(uintptr_t)map[i].start_address,
                (int)map[i].location);
}

static void JNICALL compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *address,
                             jint map_length, const jvmtiAddrLocationMap *map,
                             const void *information) {
    pthread_mutex_lock(&writing);
    if (file)
        tell_compiled(jvmti, method, size, address, map_length, map, information);
    pthread_mutex_unlock(&writing);
}

static void JNICALL generated(jvmtiEnv *jvmti, const char *name, const void *address, jint size) {
    (void)jvmti;
    pthread_mutex_lock(&writing);
    if (file)
        fprintf(file, "stub %llx %d %s\n", (unsigned long long)(uintptr_t)address, (int)size,
                name);
    pthread_mutex_unlock(&writing);
}

static jvmtiEnv *environment(JavaVM *vm) {
    jvmtiEnv *jvmti = NULL;
    jvmtiCapabilities wanted;
    jvmtiEventCallbacks callbacks;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK)
        return NULL;
    memset(&wanted, 0, sizeof wanted);
    wanted.can_generate_compiled_method_load_events = 1;
    wanted.can_get_line_numbers = 1;
    wanted.can_get_source_file_name = 1;
    failed("AddCapabilities", (*jvmti)->AddCapabilities(jvmti, &wanted));
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.CompiledMethodLoad = compiled;
    callbacks.DynamicCodeGenerated = generated;
    failed("SetEventCallbacks",
           (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks));
    return jvmti;
}

static void want(jvmtiEnv *jvmti, jvmtiEventMode mode, jvmtiEvent event) {
    failed("SetEventNotificationMode",
           (*jvmti)->SetEventNotificationMode(jvmti, mode, event, NULL));
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti = environment(vm);
    (void)options;
    (void)reserved;
    if (!jvmti)
        return JNI_ERR;
    /* With `file` not open nothing is written. */
    want(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    return JNI_OK;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    FILE *opened = options ? fopen(options, "w") : NULL;
    if (!opened)
        return JNI_ERR;
    jvmtiEnv *jvmti = environment(vm);
    if (!jvmti) {
        fclose(opened);
        return JNI_ERR;
    }
    pthread_mutex_lock(&writing);
    file = opened;
    free(told);
    told = NULL;
    told_size = told_count = 0;
    pthread_mutex_unlock(&writing);
    want(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    want(jvmti, JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    failed("GenerateEvents",
           (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD));
    failed("GenerateEvents",
           (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED));
    want(jvmti, JVMTI_DISABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    want(jvmti, JVMTI_DISABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    pthread_mutex_lock(&writing);
    fputs("end\n", opened);
    file = NULL;
    pthread_mutex_unlock(&writing);
    (*jvmti)->DisposeEnvironment(jvmti);
    return fclose(opened) == 0 ? JNI_OK : JNI_ERR;
}
