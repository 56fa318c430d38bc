/*
 * Creates and ends threads as fast as it can, from several threads at once, for some
 * seconds: can a profiler attach to that, keep up, and lose nothing unsaid? No shares are
 * known. Each of the storm's threads runs `storm_spin` for some 20 µs.
 *
 *   thread_storm [--seconds WALL=2] [--creators K=2]
 *
 * Prints `ready PID` first, and {"pid":, "created":, "process_cpu_seconds":} at the end.
 * Build with -O2 -g -pthread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CREATORS_MAX 64

static double seconds = 2;

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void *storm_spin(void *argument)
{
	volatile uint64_t x = 3;
	for (int i = 0; i < 4000; i++)
		x = x * x;
	return argument;
}

static void *create(void *argument)
{
	uint64_t *created = argument;
	double until = now(CLOCK_MONOTONIC) + seconds;
	while (now(CLOCK_MONOTONIC) < until) {
		pthread_t thread;
		/* EAGAIN where there are too many: the storm goes on. */
		if (pthread_create(&thread, NULL, storm_spin, NULL))
			continue;
		pthread_join(thread, NULL);
		++*created;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct { pthread_t thread; uint64_t created; } creators[CREATORS_MAX];
	int count = 2;
	uint64_t created = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--creators"))
			count = atoi(argv[i + 1]);
	}
	if (count < 1 || count > CREATORS_MAX) {
		fprintf(stderr, "thread_storm: --creators takes 1 to %d\n", CREATORS_MAX);
		return 2;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < count; i++)
		if (pthread_create(&creators[i].thread, NULL, create, &creators[i].created))
			return 2;
	for (int i = 0; i < count; i++) {
		pthread_join(creators[i].thread, NULL);
		created += creators[i].created;
	}
	printf("{\"pid\":%d,\"created\":%llu,\"process_cpu_seconds\":%.9f}\n", (int)getpid(),
	       (unsigned long long)created, now(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
