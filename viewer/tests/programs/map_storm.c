/*
 * Changes its executable mappings at a steady rate, as JIT compilers do that give each
 * method a mapping or flip the protection of their code: can a profiler keep up? The rest of
 * the time `storm_spin` runs. No shares are known. Of changes that are more than a twentieth of
 * a second late, as on a busy machine, most are left out.
 *
 *   map_storm [--seconds WALL=2] [--rate CHANGES_PER_SECOND=2000] [--kind anew|flip|files]
 *
 * --kind anew: each change maps 1 to 16 pages and unmaps the oldest of 64 such mappings.
 * flip: it makes one of 64 pages writable and executable again. files: at one of 64 places
 * it replaces a page of no file with a page of this program's file, or the other way round.
 *
 * Prints `ready PID` first, and {"pid":, "changes":, "process_cpu_seconds":} at the end.
 * Build with -O2 -g.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 64

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void storm_spin(void)
{
	volatile uint64_t x = 3;
	for (int i = 0; i < 4000; i++)
		x = x * x;
}

static unsigned char *map(void *at, size_t size, int flags, int file)
{
	void *mapped = mmap(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | flags, file, 0);
	if (mapped == MAP_FAILED) {
		perror("map_storm: mmap");
		exit(2);
	}
	return mapped;
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	double seconds = 2, rate = 2000, begin;
	const char *kind = "anew";
	unsigned char *pages, *mapped[PAGES] = {NULL};
	uint64_t changes = 0;
	double left_out = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--rate"))
			rate = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--kind"))
			kind = argv[i + 1];
	}
	pages = map(NULL, 2 * PAGES * page, MAP_ANONYMOUS, -1);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	begin = now(CLOCK_MONOTONIC);
	for (double since = 0; since < seconds; since = now(CLOCK_MONOTONIC) - begin) {
		unsigned char *at = pages + 2 * page * (changes % PAGES);
		double late = since * rate - left_out - (double)changes;
		if (late > rate / 20)
			left_out += late;
		if (late <= 0) {
			storm_spin();
			continue;
		}
		if (!strcmp(kind, "flip")) {
			mprotect(at, page, PROT_READ | PROT_WRITE);
			mprotect(at, page, PROT_READ | PROT_EXEC);
		} else if (!strcmp(kind, "files")) {
			if (changes / PAGES % 2)
				map(at, page, MAP_FIXED | MAP_ANONYMOUS, -1);
			else
				map(at, page, MAP_FIXED, file);
		} else {
			unsigned char **oldest = &mapped[changes % PAGES];
			size_t size = (1 + changes % 16) * page;
			/* 64 changes ago it had the same size. */
			if (*oldest)
				munmap(*oldest, size);
			*oldest = map(NULL, size, MAP_ANONYMOUS, -1);
		}
		changes++;
	}
	printf("{\"pid\":%d,\"changes\":%llu,\"process_cpu_seconds\":%.9f}\n", (int)getpid(),
	       (unsigned long long)changes, now(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
