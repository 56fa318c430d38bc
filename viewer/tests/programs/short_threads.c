/*
 * Threads that live for 5 ms of CPU time each: are all of them seen, and from their first
 * instruction on? The first half of them run one after the other, the second half in
 * waves of K at once.
 *
 *   short_threads [--count N=40] [--ms CPU_MILLISECONDS=5] [--parallel K=4]
 *
 * Each thread is named `short-<number>`, spends its time in `spin_short`, and takes the
 * last reading of its clock right before it ends; what it spends in dying (some 20 µs) is
 * not in it. At the end: {"pid":, "count":, "threads":[{"tid":, "name":, "cpu_seconds":}]}.
 * The kernel may give a tid out twice; `name` is unique. Build with -O2 -g -pthread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\timul %0, %0\n\t.endr" : "+r"(x))
#elif defined(__aarch64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\tmul %0, %0, %0\n\t.endr" : "+r"(x))
#endif

struct shorty {
	pthread_t thread;
	pid_t tid;
	char name[32];
	int64_t cpu_ns;
};

static int64_t milliseconds = 5;

static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Some 20 µs between two readings. */
__attribute__((noinline)) static void spin_short(int64_t until_ns)
{
	uint64_t x = 3;
	while (cpu_ns() < until_ns)
		for (int i = 0; i < 100; i++)
			CHAIN(x);
}

static void *run(void *argument)
{
	struct shorty *s = argument;
	s->tid = (pid_t)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), s->name);
	spin_short(milliseconds * 1000000);
	s->cpu_ns = cpu_ns();
	return NULL;
}

int main(int argc, char **argv)
{
	int count = 40, parallel = 4;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--count"))
			count = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--ms"))
			milliseconds = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--parallel"))
			parallel = atoi(argv[i + 1]);
	}
	struct shorty *all = calloc((size_t)(count > 0 ? count : 1), sizeof *all);
	if (!all || count < 1 || parallel < 1) {
		fprintf(stderr, "short_threads: bad numbers\n");
		return 2;
	}
	for (int next = 0; next < count;) {
		int wave = next < count / 2 ? 1 : parallel;
		if (wave > count - next)
			wave = count - next;
		for (int i = next; i < next + wave; i++) {
			snprintf(all[i].name, sizeof all[i].name, "short-%d", i);
			if (pthread_create(&all[i].thread, NULL, run, &all[i])) {
				fprintf(stderr, "short_threads: pthread_create failed\n");
				return 2;
			}
		}
		for (int i = next; i < next + wave; i++)
			pthread_join(all[i].thread, NULL);
		next += wave;
	}
	printf("{\"pid\":%d,\"count\":%d,\"threads\":[", (int)getpid(), count);
	for (int i = 0; i < count; i++)
		printf("%s{\"tid\":%d,\"name\":\"%s\",\"cpu_seconds\":%.9f}", i ? "," : "",
		       all[i].tid, all[i].name, all[i].cpu_ns / 1e9);
	printf("]}\n");
	free(all);
	return 0;
}
