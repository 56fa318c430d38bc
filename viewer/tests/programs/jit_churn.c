/*
 * A JIT VM in small, whose code never stays (TRUTH.md §3, §4, §7): it writes machine code
 * into a few slots, runs it there, and tells of it as real VMs do, in a jitdump of its
 * own. Every life puts another function at an address that others had before.
 *
 * A slot's life: a kind of function (`alpha`, `beta`, `gamma`) other than the last one's
 * is written there, told in the dump, and run for a while. All kinds repeat ONE dependent
 * operation, a multiplication that needs the last one's result, 200 times in a row, in a
 * loop whose count is drawn anew for each life: kinds differ in their names and in how
 * much they run, and in nothing else. Which kinds run drifts, as in programs that have
 * phases: at the beginning mostly alpha, in the middle beta, at the end gamma. So a reader
 * that looks at the zone once, at the end, gives nearly all to gamma.
 *
 * `steady` lives in a slot of its own from the first to the last, and runs now and then.
 *
 * Two truths are told. The thread's own CPU clock around each run, summed by kind, and by
 * the kind that its slot held last (what a reader at the end would say). And with --log
 * every run by itself, so that each sample can be asked: whose were you?
 *
 *   jit_churn [--lives N=2000] [--slots N=4] [--ms MEAN=2] [--told dump|map|nothing]
 *             [--buffered] [--log FILE] [--seed N=1] [--wait]
 *
 * --told dump: jit-PID.dump in the working folder, a page of it mapped executable for
 * profilers to find it by, times by CLOCK_MONOTONIC, each load preceded by its source
 * line. --told map: /tmp/perf-PID.map, which has no times, a line for each life; removed at
 * the end. --buffered: what is told is held back by stdio, in a buffer of 64 KiB (V8: 4 KiB).
 * --wait prints `ready PID` on a line by itself and begins when a line or the end of
 * stdin comes. At the end one JSON object is printed:
 *
 *   {"pid":, "lives":, "loads":, "first_slot":, "slot_bytes":, "cpu_seconds":,
 *     "kinds":[{"name":, "line":, "lives":, "seconds":, "seconds_of_last":}]}
 *
 * The log has a line for each run: `KIND SLOT BEGIN_NS END_NS`, by CLOCK_MONOTONIC, read
 * before the code is entered and after it has returned.
 *
 * Build with -O2 -g. x86-64 and aarch64.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOTS_MAX 1024
#define SLOT_BYTES 1024
#define REPEATS 200
#define KINDS 4
#define STEADY 3

static const char *const names[KINDS] = {"alpha", "beta", "gamma", "steady"};
/* Nobody has that file; a line is only a number to tell. */
static const int lines[KINDS] = {10, 20, 30, 40};
static uint64_t lives_of[KINDS];
static int64_t ns_of[KINDS], ns_of_last[KINDS];

static int held[SLOTS_MAX];
static int64_t ns_in_slot[SLOTS_MAX];

enum told { DUMP, MAP, NOTHING };
static enum told told = DUMP;
static FILE *telling, *logging;
static uint64_t loads;
static unsigned char *zone;

static void usage(const char *why)
{
	fprintf(stderr, "jit_churn: %s\n", why);
	exit(2);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The code: takes a number, multiplies it with itself REPEATS * count times. */
#if defined(__x86_64__)
#define MACHINE EM_X86_64
static size_t assemble(unsigned char *at, uint32_t count)
{
	static const unsigned char multiply[] = {0x48, 0x0f, 0xaf, 0xc0}; /* imul rax, rax */
	unsigned char *p = at;
	int32_t back;

	memcpy(p, "\x48\x89\xf8\xb9", 4); /* mov rax, rdi; mov ecx, count */
	memcpy(p + 4, &count, 4);
	p += 8;
	for (int i = 0; i < REPEATS; i++, p += sizeof multiply)
		memcpy(p, multiply, sizeof multiply);
	memcpy(p, "\xff\xc9\x0f\x85", 4); /* dec ecx; jnz back */
	p += 8;
	back = (int32_t)(at + 8 - p);
	memcpy(p - 4, &back, 4);
	*p++ = 0xc3; /* ret */
	return (size_t)(p - at);
}
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
static size_t assemble(unsigned char *at, uint32_t count)
{
	uint32_t code[REPEATS + 5];
	size_t n = 0;

	code[n++] = 0x52800001u | (count & 0xffff) << 5;      /* movz w1, #low */
	code[n++] = 0x72a00001u | (count >> 16 & 0xffff) << 5; /* movk w1, #high, lsl 16 */
	for (int i = 0; i < REPEATS; i++)
		code[n++] = 0x9b007c00u; /* mul x0, x0, x0 */
	code[n++] = 0x71000421u; /* subs w1, w1, #1 */
	code[n] = 0x54000001u | ((uint32_t)(2 - (int)n) & 0x7ffff) << 5; /* b.ne back */
	n++;
	code[n++] = 0xd65f03c0u; /* ret */
	memcpy(at, code, n * 4);
	return n * 4;
}
#else
#error "write the code for this architecture"
#endif

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, telling) != size)
		usage("what is to be told can't be written");
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof value);
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof value);
}

/* The formats are in tools/perf/Documentation/jitdump-specification.txt of Linux. */
static void begin_dump(size_t buffer)
{
	char path[64];
	int file;

	snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
	file = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
	/* This mapping is for profilers alone: it tells them where the dump is. */
	if (file < 0 || mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC,
			     MAP_PRIVATE, file, 0) == MAP_FAILED)
		usage("the working folder takes no dump");
	telling = fdopen(file, "wb");
	setvbuf(telling, NULL, buffer ? _IOFBF : _IONBF, buffer);
	put_u32(0x4A695444);
	put_u32(1);
	put_u32(40);
	put_u32(MACHINE);
	put_u32(0);
	put_u32((uint32_t)getpid());
	put_u64((uint64_t)now_ns(CLOCK_MONOTONIC));
	put_u64(0);
}

static void begin_map(size_t buffer)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	telling = fopen(path, "we");
	if (!telling)
		usage("/tmp takes no map");
	setvbuf(telling, NULL, buffer ? _IOFBF : _IOLBF, buffer);
}

static void tell(int kind, const unsigned char *at, size_t size, int64_t time)
{
	static const char file[] = "churn.src";
	size_t name = strlen(names[kind]) + 1;

	loads++;
	if (told == MAP)
		fprintf(telling, "%llx %zx %s\n", (unsigned long long)(uintptr_t)at, size,
			names[kind]);
	if (told != DUMP)
		return;
	/* JIT_CODE_DEBUG_INFO with one entry, padded to eight bytes as some VMs do. */
	put_u32(2);
	put_u32(16 + 16 + 16 + 16);
	put_u64((uint64_t)time);
	put_u64((uintptr_t)at);
	put_u64(1);
	put_u64((uintptr_t)at);
	put_u32((uint32_t)lines[kind]);
	put_u32(0);
	put(file, sizeof file);
	put("\0\0\0\0\0\0", 16 - sizeof file);
	/* JIT_CODE_LOAD */
	put_u32(0);
	put_u32((uint32_t)(16 + 40 + name + size));
	put_u64((uint64_t)time);
	put_u32((uint32_t)getpid());
	put_u32((uint32_t)syscall(SYS_gettid));
	put_u64((uintptr_t)at);
	put_u64((uintptr_t)at);
	put_u64(size);
	put_u64(loads);
	put(names[kind], name);
	put(at, size);
}

static void load(int slot, int kind, uint32_t count)
{
	unsigned char *at = zone + (size_t)slot * SLOT_BYTES;
	int64_t time = now_ns(CLOCK_MONOTONIC);
	size_t size = assemble(at, count);

	__builtin___clear_cache((char *)at, (char *)at + size);
	tell(kind, at, size, time);
	held[slot] = kind;
	lives_of[kind]++;
}

static uint64_t enter(int slot, uint64_t x)
{
	uint64_t (*code)(uint64_t);
	unsigned char *at = zone + (size_t)slot * SLOT_BYTES;
	int64_t begin, cpu;

	memcpy(&code, &at, sizeof code);
	begin = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	x = code(x);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	ns_of[held[slot]] += cpu;
	ns_in_slot[slot] += cpu;
	if (logging)
		fprintf(logging, "%s %d %lld %lld\n", names[held[slot]], slot, (long long)begin,
			(long long)now_ns(CLOCK_MONOTONIC));
	return x;
}

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	/* xorshift64 */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

/* Which kind comes next: how likely each is changes from the beginning to the end. */
static int choose(uint64_t life, uint64_t lives, int but)
{
	int kind;
	do {
		uint64_t late = life * 100 / lives, dice = draw(100);
		if (late < 60)
			kind = dice < 75 ? 0 : dice < 95 ? 1 : 2;
		else if (late < 90)
			kind = dice < 15 ? 0 : dice < 90 ? 1 : 2;
		else
			kind = dice < 5 ? 0 : dice < 10 ? 1 : 2;
	} while (kind == but);
	return kind;
}

/* How many rounds of the loop take a millisecond here: the best of ten runs of a millisecond, since a busy host
 * may slow all of some shorter runs. No told code comes to the slot at `at`. */
static uint64_t calibrate(unsigned char *at)
{
	const uint32_t rounds = 4000;
	uint64_t (*code)(uint64_t);
	int64_t best = INT64_MAX;

	assemble(at, rounds);
	__builtin___clear_cache((char *)at, (char *)at + SLOT_BYTES);
	memcpy(&code, &at, sizeof code);
	for (int i = 0; i < 10; i++) {
		int64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
		state += code(3);
		begin = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		if (begin < best)
			best = begin;
	}
	return UINT64_C(1000000) * rounds / (uint64_t)(best > 0 ? best : 1) + 1;
}

int main(int argc, char **argv)
{
	uint64_t lives = 2000, slots = 4, per_ms, x = 3;
	double ms = 2;
	int wait = 0;
	size_t buffer = 0;

	state = 1;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--wait")) {
			wait = 1;
			continue;
		}
		if (!strcmp(argv[i], "--buffered")) {
			buffer = 1 << 16;
			continue;
		}
		if (!strcmp(argv[i], "--lives"))
			lives = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--slots"))
			slots = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--ms"))
			ms = atof(value);
		else if (!strcmp(argv[i], "--seed"))
			state = strtoull(value, NULL, 10) * 2 + 1;
		else if (!strcmp(argv[i], "--log") && !logging)
			logging = fopen(value, "we");
		else if (!strcmp(argv[i], "--told"))
			told = !strcmp(value, "dump") ? DUMP : !strcmp(value, "map") ? MAP : NOTHING;
		else
			usage("unknown option; the head of jit_churn.c lists them");
		i++;
	}
	if (lives < 1 || slots < 1 || slots >= SLOTS_MAX || ms < 0.001 || ms > 1000)
		usage("--lives from 1, --slots 1 to 1023, --ms 0.001 to 1000");
	/* The last slots are the steady one's, and the calibration's. */
	zone = mmap(NULL, (slots + 2) * SLOT_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (zone == MAP_FAILED)
		usage("no memory that can be written and executed is to be had here");
	per_ms = calibrate(zone + (slots + 1) * SLOT_BYTES);
	if (wait) {
		char line[16];
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		while (fgets(line, sizeof line, stdin) && !strchr(line, '\n'))
			;
	}
	if (told == DUMP)
		begin_dump(buffer);
	else if (told == MAP)
		begin_map(buffer);

	for (int i = 0; i <= SLOTS_MAX - 1; i++)
		held[i] = -1;
	load((int)slots, STEADY, (uint32_t)(ms * (double)per_ms) + 1);
	for (uint64_t life = 0; life < lives; life++) {
		/* The last lives go through all slots, so that each has been told anew. */
		uint64_t left = lives - life;
		int slot = (int)(left <= slots ? left - 1 : draw(slots));
		double count = ms * (double)per_ms * (0.5 + (double)draw(1024) / 1024);

		load(slot, choose(life, lives, held[slot]), (uint32_t)count + 1);
		x = enter(slot, x);
		if (life % 8 == 0)
			x = enter((int)slots, x);
	}
	/* The result is used, or the chain would be nobody's. */
	if (x == 42)
		lives_of[0] = 0;
	if (told == DUMP) {
		put_u32(3); /* JIT_CODE_CLOSE */
		put_u32(16);
		put_u64((uint64_t)now_ns(CLOCK_MONOTONIC));
	}
	if (telling && fclose(telling))
		usage("what is to be told can't be written");
	if (told == MAP) {
		char path[64];
		/* Not at once: who re-reads it now and then is to see its end. */
		usleep(300000);
		snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
		unlink(path);
	}
	if (logging && fclose(logging))
		usage("the log can't be written");
	for (uint64_t slot = 0; slot <= slots; slot++)
		if (held[slot] >= 0)
			ns_of_last[held[slot]] += ns_in_slot[slot];
	printf("{\"pid\":%d,\"lives\":%llu,\"loads\":%llu,\"first_slot\":%llu,\"slot_bytes\":%d,"
	       "\"cpu_seconds\":%.9f,\"kinds\":[",
	       (int)getpid(), (unsigned long long)lives, (unsigned long long)loads,
	       (unsigned long long)(uintptr_t)zone, SLOT_BYTES,
	       now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s{\"name\":\"%s\",\"line\":%d,\"lives\":%llu,\"seconds\":%.9f,"
		       "\"seconds_of_last\":%.9f}",
		       kind ? "," : "", names[kind], lines[kind],
		       (unsigned long long)lives_of[kind], ns_of[kind] / 1e9,
		       ns_of_last[kind] / 1e9);
	printf("]}\n");
	return 0;
}
