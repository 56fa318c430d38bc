/*
 * A process with the memory of a Cog VM, whose code a test has written (x86-64).
 *
 *   cog_replica PLAN LOG
 *
 * PLAN has one line per mapping, with hexadecimal numbers:
 *
 *   file START LENGTH PROTECTION OFFSET PATH   maps a file, private
 *   copy START LENGTH PROTECTION OFFSET PATH   maps anonymous memory with contents of a file
 *
 * Lines on stdin change the process between two cycles. `go` ends a group of lines; the answer is `done`.
 *
 *   run NAME ENTRY LOOP COUNT    calls ENTRY(COUNT, LOOP, 3) once per cycle; COUNT 0 ends the calls
 *   collect NAME MODE COUNTER    the number at MODE is 2 during these calls; each adds 1 at COUNTER
 *   set ADDRESS BYTES            writes hexadecimal bytes
 *   move FROM TO LENGTH          moves memory
 *   damage START LENGTH          a thread writes random bytes at random ranges of this kind without end
 *
 * A cycle is one call of each spot in the order of the `run` lines. A random factor between 0.8 and 1.2
 * scales all counts of a cycle: cycles of equal length would be sampled at the same places.
 *
 * LOG has a line `NAME BEGIN END CPU` per call: nanoseconds of CLOCK_MONOTONIC, and CPU time. The process
 * ends at the end of stdin.
 *
 * Build without PIE: executables with PIE and Cog VMs lie in the same part of the address space.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SPOTS 32
#define RANGES 4096

struct spot {
	char name[64];
	uint64_t entry, loop, count;
	volatile uint64_t *mode, *counter;
};

static struct spot spots[SPOTS];
static int spot_count;
static struct {
	uint64_t start, length;
} ranges[RANGES];
static int range_count;

static void fail(const char *why, const char *line)
{
	fprintf(stderr, "cog_replica: %s: %s\n", why, line);
	exit(2);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* xorshift64 */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void map_line(const char *line)
{
	char kind[8], path[4096];
	uint64_t start, length, offset;
	unsigned protection;
	void *at;
	int file, is_file;

	if (sscanf(line, "%7s %lx %lx %x %lx %4095[^\n]", kind, &start, &length, &protection,
		   &offset, path) != 6)
		fail("no line of a plan", line);
	is_file = !strcmp(kind, "file");
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		fail("no such file", line);
	at = mmap((void *)start, length, is_file ? (int)protection : PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_FIXED_NOREPLACE | (is_file ? 0 : MAP_ANONYMOUS),
		  is_file ? file : -1, is_file ? (off_t)offset : 0);
	if (at != (void *)start)
		fail("the addresses are taken", line);
	if (!is_file && (pread(file, at, length, (off_t)offset) != (ssize_t)length ||
			 mprotect(at, length, (int)protection)))
		fail("no contents", line);
	close(file);
}

static void put_spot(const char *line, const struct spot *new)
{
	int at = 0;

	while (at < spot_count && strcmp(spots[at].name, new->name))
		at++;
	if (!new->count) {
		if (at == spot_count)
			fail("no such spot", line);
		spot_count--;
		memmove(&spots[at], &spots[at + 1], (size_t)(spot_count - at) * sizeof *spots);
		return;
	}
	if (at == SPOTS)
		fail("too many spots", line);
	spot_count += at == spot_count;
	spots[at] = *new;
}

static void collect(const char *line, const char *name, uint64_t mode, uint64_t counter)
{
	for (int at = 0; at < spot_count; at++)
		if (!strcmp(spots[at].name, name)) {
			spots[at].mode = (volatile uint64_t *)mode;
			spots[at].counter = (volatile uint64_t *)counter;
			return;
		}
	fail("no such spot", line);
}

static void set_bytes(const char *line, uint64_t at, const char *hex)
{
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		*(volatile unsigned char *)at++ = (unsigned char)byte;
	if (*hex && *hex != '\n')
		fail("no hexadecimal bytes", line);
}

static void *damage(void *unused)
{
	uint64_t state = 1;

	(void)unused;
	for (;;) {
		uint64_t dice = draw(&state);
		uint64_t range = dice % (uint64_t)range_count;
		uint64_t offset = (dice >> 16) % ranges[range].length;
		volatile unsigned char *at = (unsigned char *)ranges[range].start + offset;
		unsigned char before = *at;

		/* Half of all bytes stay damaged. */
		*at = (unsigned char)(dice >> 40);
		usleep(20);
		if (dice >> 63)
			*at = before;
	}
	return NULL;
}

/* Returns whether the line ends a group. */
static int command(const char *line)
{
	struct spot new = {.mode = NULL};
	uint64_t at, to, length;
	int hex = 0;
	pthread_t thread;

	if (sscanf(line, "run %63s %lx %lx %lu", new.name, &new.entry, &new.loop, &new.count) == 4)
		put_spot(line, &new);
	else if (sscanf(line, "collect %63s %lx %lx", new.name, &at, &to) == 3)
		collect(line, new.name, at, to);
	else if (sscanf(line, "set %lx %n", &at, &hex) == 1 && hex)
		set_bytes(line, at, line + hex);
	else if (sscanf(line, "move %lx %lx %lx", &at, &to, &length) == 3)
		memmove((void *)to, (const void *)at, length);
	else if (sscanf(line, "damage %lx %lx", &at, &length) == 2 && range_count < RANGES) {
		ranges[range_count].start = at;
		ranges[range_count++].length = length;
	} else if (!strcmp(line, "go\n")) {
		if (range_count && pthread_create(&thread, NULL, damage, NULL))
			fail("no thread", line);
		return 1;
	} else
		fail("no command", line);
	return 0;
}

/* Returns 0 at the end of stdin. */
static int changes(void)
{
	static char line[1 << 17];
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	if (spot_count && poll(&input, 1, 0) <= 0)
		return 1;
	do
		if (!fgets(line, sizeof line, stdin))
			return 0;
	while (!command(line));
	puts("done");
	fflush(stdout);
	return 1;
}

static void call(const struct spot *spot, uint64_t scale, FILE *log)
{
	void (*code)(uint64_t, uint64_t, uint64_t);
	int64_t begin, cpu;

	memcpy(&code, &spot->entry, sizeof code);
	if (spot->mode)
		*spot->mode = 2;
	begin = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	code((spot->count * scale >> 12) + 1, spot->loop, 3);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (spot->mode) {
		++*spot->counter;
		*spot->mode = 0;
	}
	fprintf(log, "%s %ld %ld %ld\n", spot->name, begin, now_ns(CLOCK_MONOTONIC), cpu);
}

int main(int argc, char **argv)
{
	char line[8192];
	uint64_t state = 1;
	FILE *plan = argc == 3 ? fopen(argv[1], "re") : NULL;
	FILE *log = argc == 3 ? fopen(argv[2], "we") : NULL;

	if (!plan || !log)
		fail("two files are necessary", "PLAN LOG");
	while (fgets(line, sizeof line, plan))
		map_line(line);
	fclose(plan);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	/* Unbuffered: no line of stdin waits in a buffer while poll sees none. */
	setvbuf(stdin, NULL, _IONBF, 0);
	while (changes()) {
		uint64_t scale = 4096 * 8 / 10 + draw(&state) % (4096 * 4 / 10);

		for (int at = 0; at < spot_count; at++)
			call(&spots[at], scale, log);
		/* A killed process has a whole log of its earlier cycles. */
		fflush(log);
	}
	return 0;
}
