/*
 * A process with the memory layout of a 64-bit Cog VM (OpenSmalltalk, June 2019) on x86-64: variables,
 * objects, code zone, stack pages. It is no VM: its four methods are made by hand, and call each other as
 * the VM's code does.
 *
 *   page 3:  Bench>>main -> Bench>>outer -> (context)
 *   page 0:  Bench>>loop -> frameless, framed, primitive -> primitiveSpin (C)
 *
 * `outer` has a context, which is the caller of page 0. Ends after --rounds calls of each.
 *
 *   cog_layout [ROUNDS=20000]
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t word;

#define PAGES 4
#define PAGE_BYTES 8192
#define UNCHECKED_ENTRY 71

/* The VM's variables. */
volatile word codeBase, methodZoneBase, mzFreeStart, youngReferrers, limitAddress;
volatile word hiddenRootsObj, specialObjectsOop, nilObj, heapBase;
volatile word trampolineTableIndex, trampolineAddresses[8];
volatile word methodCount, openPICList, methodBytesFreedSinceLastCompaction;
volatile word gcMode, gcPhaseInProgress, compactionInProgress, gcStartUsecs, statGCEndUsecs;
volatile word statScavenges, statScavengeGCUsecs, statSGCDeltaUsecs, statFullGCs, statFullGCUsecs;
volatile word statCodeCompactionCount, statProcessSwitch, statStackOverflow, statStackPageDivorce;
volatile word edenBytes = 4 << 20, cmEntryOffset = 48, cmNoCheckEntryOffset = UNCHECKED_ENTRY;
volatile word cbNoSwitchEntryOffset = 48, classNameIndex = 6, thisClassIndex = 5, metaclassNumSlots = 6;
volatile word stackBasePlus1, bytesPerPage = PAGE_BYTES, numStackPages = PAGES, pages;
volatile word framePointer, stackPointer, instructionPointer, CStackPointer;
volatile word ceBaseFrameReturnTrampoline, ceReturnToInterpreterTrampoline;

static word *free_object;
static unsigned char *code;
static word rounds = 20000;

/* Class indexes. */
enum { ARRAY = 51, SYMBOL = 60, BENCH = 61, BENCH_CLASS = 62 };

static word object(word class_index, word format, word count, const word *slots)
{
	if (count >= 255)
		*free_object++ = count | 255ULL << 56;
	word *header = free_object;
	*header = class_index | format << 24 | (count < 255 ? count : 255) << 56;
	if (slots)
		memcpy(header + 1, slots, count * sizeof(word));
	free_object = header + 1 + count;
	return (word)header;
}

static word symbol(const char *text)
{
	word length = strlen(text), count = (length + 7) / 8;
	word at = object(SYMBOL, 16 + (8 - length % 8) % 8, count, NULL);
	memcpy((char *)at + 8, text, length);
	return at;
}

static word class_named(const char *name)
{
	word slots[9] = { [6] = symbol(name) };
	return object(BENCH_CLASS, 1, 9, slots);
}

static void emit(int count, ...)
{
	va_list bytes;
	va_start(bytes, count);
	while (count--)
		*code++ = (unsigned char)va_arg(bytes, int);
	va_end(bytes);
}

static void emit_bytes(const volatile void *bytes, int count)
{
	memcpy(code, (const void *)bytes, count);
	code += count;
}

/* mov rax, value */
static void load(word value)
{
	emit(2, 0x48, 0xb8);
	emit_bytes(&value, sizeof value);
}

static void call(word target)
{
	load(target);
	emit(2, 0xff, 0xd0);
}

/* mov [rax], register of `modrm`, or back. */
static void access_variable(volatile word *variable, int opcode, int modrm)
{
	load((word)variable);
	emit(3, 0x48, opcode, modrm);
}

static void spin(void)
{
	uint32_t times = 30000;
	emit(1, 0xb9);
	emit_bytes(&times, sizeof times);
	emit(4, 0xff, 0xc9, 0x75, 0xfc);
}

/* push rbp; mov rbp, rsp; push method; push nil; push nil. Returns the stack check's offset. */
static word build_frame(word method)
{
	emit(4, 0x55, 0x48, 0x89, 0xe5);
	load(method);
	emit(1, 0x50);
	load(nilObj);
	emit(2, 0x50, 0x50);
	return (word)code - method;
}

/* mov rsp, rbp; pop rbp; ret */
static void leave(void)
{
	emit(5, 0x48, 0x89, 0xec, 0x5d, 0xc3);
}

static word begin(void)
{
	word method = (word)code;
	code += UNCHECKED_ENTRY;
	return method;
}

static void finish(word method, word class_at, const char *selector, word stack_check)
{
	word association[2] = { 0, class_at };
	word literals[4] = { 2 << 3 | 1, symbol(selector), 0, 0x7c7c7c7c7c7c7c7c };
	literals[2] = object(ARRAY, 1, 2, association);
	word *header = (word *)method;
	emit(2, 0, 0);
	header[0] = 0x008000000a000035;
	header[1] = 2 << 8 | 3 << 13 | stack_check << 20 | ((word)code - method) << 32;
	header[2] = object(50, 24, 4, literals);
	header[3] = literals[0];
	header[4] = nilObj;
	code = (unsigned char *)(((word)code + 7) & ~7ULL);
	methodCount++;
}

/* Runs on the C stack. */
static __attribute__((noinline, used)) void primitiveSpin(void)
{
	for (volatile int i = 0; i < 20000; i++)
		;
	statProcessSwitch++;
	if (statProcessSwitch % 100 == 0) {
		statSGCDeltaUsecs = 50;
		statScavengeGCUsecs += 50;
		statScavenges++;
	}
	if (statProcessSwitch == rounds)
		_exit(0);
}

static void push(word **stack, word value)
{
	*--*stack = value;
}

/* A call that returns to `back`, and the frame of `method` with this context. */
static word frame(word **stack, word back, word below, word method, word context)
{
	push(stack, back);
	push(stack, below);
	word fp = (word)*stack;
	push(stack, method);
	push(stack, context);
	push(stack, nilObj);
	return fp;
}

int main(int count, char **arguments)
{
	if (count > 1)
		rounds = strtoull(arguments[1], NULL, 10);
	int all = PROT_READ | PROT_WRITE | PROT_EXEC;
	char *area = mmap(NULL, 4 << 20, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 1;
	free_object = (word *)(area + (1 << 20));
	heapBase = (word)free_object;
	nilObj = object(40, 1, 1, NULL);
	static word classes[1024], special[60];
	classes[ARRAY] = special[7] = class_named("Array");
	classes[SYMBOL] = class_named("Symbol");
	classes[BENCH] = class_named("Bench");
	word metaclass[6] = { [5] = classes[BENCH] };
	classes[BENCH_CLASS] = object(1, 1, 6, metaclass);
	word table = object(16, 2, 1024, classes);
	hiddenRootsObj = object(16, 2, 1, &table);
	special[20] = symbol("doesNotUnderstand:");
	specialObjectsOop = object(ARRAY, 2, 60, special);

	word zone = (word)area;
	codeBase = zone;
	methodZoneBase = zone + 0x200;
	youngReferrers = limitAddress = zone + 0x10000;
	ceBaseFrameReturnTrampoline = zone + 0x40;
	ceReturnToInterpreterTrampoline = zone + 0x60;
	word primitive_trampoline = zone + 0x80;
	static const char *names[4] = { "ceSend0Args", "ceBaseFrameReturnTrampoline",
		"ceReturnToInterpreterTrampoline", "ceCallPrimitive" };
	word starts[4] = { zone, zone + 0x40, zone + 0x60, primitive_trampoline };
	for (int i = 0; i < 4; i++) {
		trampolineAddresses[2 * i] = (word)names[i];
		trampolineAddresses[2 * i + 1] = starts[i];
	}
	trampolineTableIndex = 8;

	/* The pages lie on the C stack. C code runs below them. */
	word *stack = (word *)(((word)alloca(PAGES * PAGE_BYTES + 64) + 63) & ~63ULL);
	memset(stack, 0, PAGES * PAGE_BYTES);
	stackBasePlus1 = (word)stack + 1;
	CStackPointer = (word)stack - 256;
	static word records[PAGES][10];
	pages = (word)records;
	for (int i = 0; i < PAGES; i++)
		records[i][4] = (word)stack + (i + 1) * PAGE_BYTES - 8;

	code = (unsigned char *)primitive_trampoline;
	access_variable(&stackPointer, 0x89, 0x20);
	access_variable(&framePointer, 0x89, 0x28);
	access_variable(&CStackPointer, 0x8b, 0x20);
	call((word)primitiveSpin);
	access_variable(&framePointer, 0x8b, 0x28);
	access_variable(&stackPointer, 0x8b, 0x20);
	emit(1, 0xc3);

	code = (unsigned char *)methodZoneBase;
	word bench = classes[BENCH];
	word frameless = begin();
	spin();
	emit(1, 0xc3);
	finish(frameless, bench, "frameless", 0);
	word framed = begin();
	word check = build_frame(framed);
	spin();
	leave();
	finish(framed, bench, "framed", check);
	word primitive = begin();
	check = build_frame(primitive);
	call(primitive_trampoline);
	leave();
	finish(primitive, bench, "primitive", check);
	word loop = begin();
	check = build_frame(loop);
	word body = (word)code;
	call(frameless + UNCHECKED_ENTRY);
	call(framed + UNCHECKED_ENTRY);
	call(primitive + UNCHECKED_ENTRY);
	int32_t back = (int32_t)(body - ((word)code + 5));
	emit(1, 0xe9);
	emit_bytes(&back, sizeof back);
	finish(loop, bench, "loop", check);
	word outer = begin();
	check = build_frame(outer);
	call(loop + UNCHECKED_ENTRY);
	word into_outer = (word)code;
	leave();
	finish(outer, bench, "outer", check);
	word first = begin();
	check = build_frame(first);
	call(outer + UNCHECKED_ENTRY);
	word into_first = (word)code;
	leave();
	finish(first, bench, "main", check);
	mzFreeStart = (word)code;

	word *sp = (word *)(records[3][4] + 8);
	push(&sp, nilObj);
	push(&sp, nilObj);
	word fp = frame(&sp, ceBaseFrameReturnTrampoline, 0, first, nilObj);
	fp = frame(&sp, into_first, fp, outer, nilObj);
	word slots[22] = { fp + 1 };
	word context = object(36, 3, 22, slots);
	((word *)fp)[-2] = context;
	push(&sp, into_outer);
	records[3][1] = (word)sp;
	records[3][2] = fp;

	sp = (word *)(records[0][4] + 8);
	push(&sp, context);
	push(&sp, nilObj);
	fp = frame(&sp, ceBaseFrameReturnTrampoline, 0, loop, nilObj);
	__asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tjmp *%2"
			 : : "r"(sp), "a"(fp), "d"(body) : "memory");
	__builtin_unreachable();
}
