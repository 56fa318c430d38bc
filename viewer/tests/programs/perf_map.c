/*
 * A VM in small that names its code in a perf map: /tmp/perf-PID.map, written before the code
 * runs and removed at the end. The code zone has --lines pieces of 64 bytes; --run of them, evenly
 * spread, run for the same time each, in turn, until SIGTERM.
 *
 *   perf_map [--lines N=1] [--run K=1] [--name TEXT=piece] [--file PATH] [--protected]
 *
 * Piece I is named TEXT.I. TEXT is also the name of both threads. --file: the second thread runs
 * code in a mapping of this file, which the program writes. --protected: other processes of the
 * same user may not read its memory.
 *
 * Prints `ready PID` when the map is written. x86-64 and aarch64.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PIECE_BYTES 64

static volatile sig_atomic_t ended;
static const char *name = "piece";

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* Counts its argument down to 0. */
#if defined(__x86_64__)
static const unsigned char code[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
#elif defined(__aarch64__)
static const uint32_t code[] = {0x71000400u, 0x54ffffe1u, 0xd65f03c0u};
#else
#error "write the code for this architecture"
#endif

static void run(const unsigned char *at)
{
	void (*count_down)(uint32_t);

	memcpy(&count_down, &at, sizeof count_down);
	count_down(1000000);
}

static void *run_file(void *at)
{
	prctl(PR_SET_NAME, name);
	while (!ended)
		run(at);
	return NULL;
}

static void *map_file(const char *path)
{
	int file = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	void *at;

	if (file < 0 || write(file, code, sizeof code) != sizeof code)
		fail("the file of --file");
	at = mmap(NULL, sizeof code, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (at == MAP_FAILED)
		fail("mmap of the file");
	return at;
}

static void write_map(const char *path, const unsigned char *zone, size_t lines)
{
	FILE *map = fopen(path, "we");

	if (!map)
		fail(path);
	for (size_t i = 0; i < lines; i++)
		fprintf(map, "%llx %x %s.%zu\n",
			(unsigned long long)(uintptr_t)(zone + i * PIECE_BYTES), PIECE_BYTES, name,
			i);
	if (fclose(map))
		fail(path);
}

int main(int argc, char **argv)
{
	size_t lines = 1, runs = 1;
	const char *file = NULL;
	unsigned char *zone;
	pthread_t thread;
	char map[64];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--protected")) {
			prctl(PR_SET_DUMPABLE, 0);
			continue;
		}
		if (i + 1 == argc)
			break;
		if (!strcmp(argv[i], "--lines"))
			lines = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--run"))
			runs = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--name"))
			name = argv[++i];
		else if (!strcmp(argv[i], "--file"))
			file = argv[++i];
	}
	if (!runs || runs > lines)
		runs = lines;
	prctl(PR_SET_NAME, name);
	zone = mmap(NULL, lines * PIECE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (zone == MAP_FAILED)
		fail("mmap of the code zone");
	for (size_t i = 0; i < runs; i++) {
		unsigned char *at = zone + i * (lines / runs) * PIECE_BYTES;

		memcpy(at, code, sizeof code);
		__builtin___clear_cache((char *)at, (char *)at + sizeof code);
	}
	signal(SIGTERM, end);
	snprintf(map, sizeof map, "/tmp/perf-%d.map", (int)getpid());
	write_map(map, zone, lines);
	if (file && pthread_create(&thread, NULL, run_file, map_file(file)))
		fail("pthread_create");
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (size_t i = 0; !ended; i++)
		run(zone + i % runs * (lines / runs) * PIECE_BYTES);
	unlink(map);
	return 0;
}
