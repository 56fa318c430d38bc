/*
 * A program with known shares (TRUTH.md §3, §4, §6).
 *
 * Each thread goes through six ranges, again and again:
 *
 *   share_a, share_b, share_c, share_d   one function each
 *   share_two_lines                      two ranges, two loops on two lines of it
 *
 * Every range repeats ONE dependent operation, a multiplication that needs the last
 * one's result, 200 times in a row (asm, so that no compiler takes it apart), in a loop
 * whose count comes from the command line. The ranges differ in the count and in nothing
 * else; slowing one down means another count, not another program.
 *
 * The truth is the thread's own CPU-time clock around each range, because CPU time is
 * what cpu-clock samples follow; a wall clock would count preemption too. A range takes
 * 200 µs or more with the default counts and a reading some 0.3 µs, most of it outside of
 * the two stamps; `elsewhere` is what was spent outside of all ranges: readings, start and
 * end of the thread.
 *
 * Compare shares among the ranges' own samples: what the kernel does while a range runs
 * (ticks, soft interrupts, preemption; under 0.5 % on an idle machine, several per cent on
 * a busy one) is in the range's seconds, and its samples have kernel addresses.
 *
 *   known_shares [--threads N=2] [--cycles N | --seconds CPU_SECONDS | --forever]
 *                [--loops A,B,C,D,L1,L2=2000,4000,6000,8000,3000,5000] [--jitter PERCENT=0]
 *
 * A cycle of some 4.2 ms is about six periods of 714 us: where it is so nearly, samples
 * fall on the same six places of it again and again, and tell of nothing else. With
 * --jitter all counts of a cycle are changed by one random factor of up to so many per
 * cent either way: no two cycles are of one length, and the shares stay as they are.
 *
 * --seconds are seconds of CPU time of each thread. --forever prints `ready PID` on a line
 * by itself and goes on until SIGTERM or SIGINT. At the end one JSON object is printed:
 *
 *   {"pid":, "process_cpu_seconds":, "threads":[{"tid":, "name":, "cycles":,
 *     "cpu_seconds":, "elsewhere_seconds":,
 *     "ranges":[{"function":, "line":, "seconds":}]}]}
 *
 * `line` is the source line of the range's operation. Build with -O2 -g -pthread.
 *
 * With -DPUBLISHED it links vmscope-publish, and its threads are registered for the sampler in it; so
 * is one more, `sleeper`, which sleeps all the time and counts how often a signal ends that:
 * `"interrupted":` in the JSON. The main thread, and one that reaches safe points, are not registered.
 *
 * With -DCALLED=SEPARATE all ranges call one function, `repeated`, for their operation: its callers
 * have the ranges' shares (TRUTH.md §9). With -DCALLED=INLINED the function is inlined into them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef PUBLISHED
#include <errno.h>
#include <poll.h>
#include "vmscope_publish.h"

static vmscope_publisher *publisher;
static volatile sig_atomic_t workers_done;
static unsigned long interrupted;
static int wake[2];
#define REGISTER(name) vmscope_register_thread(publisher, 0, vmscope_str(name), NULL, 0)
#define UNREGISTER() vmscope_unregister_thread(publisher)

static void *sleep_all_the_time(void *unused)
{
	struct pollfd end = {.fd = wake[0], .events = POLLIN};
	(void)unused;
	pthread_setname_np(pthread_self(), "sleeper");
	REGISTER("sleeper");
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		interrupted++;
	UNREGISTER();
	return NULL;
}

static void *reach_safe_points(void *unused)
{
	const vmscope_callbacks nothing = VMSCOPE_INIT(vmscope_callbacks);
	(void)unused;
	pthread_setname_np(pthread_self(), "safe-points");
	while (!workers_done) {
		vmscope_poll(publisher, &nothing);
		usleep(2000);
	}
	return NULL;
}
#else
#define REGISTER(name) (void)0
#define UNREGISTER() (void)0
#endif

#if defined(__x86_64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\timul %0, %0\n\t.endr" : "+r"(x))
#elif defined(__aarch64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\tmul %0, %0, %0\n\t.endr" : "+r"(x))
#else
#error "write the dependent operation for this architecture"
#endif

#define RANGES 6
#define THREADS_MAX 10000

/* The line of each operation, noted by the function that holds it. */
static int line_of[RANGES];
static const char *const function_of[RANGES] = {
	"share_a", "share_b", "share_c", "share_d", "share_two_lines", "share_two_lines",
};
static uint64_t loops[RANGES] = {2000, 4000, 6000, 8000, 3000, 5000};
/* Counts are scaled in fixed point. */
#define SCALE_BITS 12
static uint64_t jitter_percent;
static uint64_t cycles_wanted;
static double seconds_wanted;
static volatile sig_atomic_t stop;

struct worker {
	pthread_t thread;
	pid_t tid;
	char name[16];
	uint64_t cycles;
	uint64_t scale, random;
	int64_t ns[RANGES];
	int64_t cpu_ns;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Functions alike would be folded into one. */
#define SEPARATE __attribute__((noinline, noclone, aligned(64)))
#define INLINED inline __attribute__((always_inline))

#ifdef CALLED
CALLED static uint64_t repeated(uint64_t left, uint64_t x)
{
	do {
		CHAIN(x);
	} while (--left);
	return x;
}
#define REPEATED(left, x) x = repeated(left, x)
#else
#define REPEATED(left, x)          \
	do {                       \
		CHAIN(x);          \
	} while (--left)
#endif

/* Each function stamps by itself, so that nothing but the loop is between the stamps. */
#define RANGE(index, w, x)                                             \
	do {                                                           \
		uint64_t left = loops[index] * (w)->scale >> SCALE_BITS; \
		int64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);       \
		REPEATED(left, x);                                     \
		(w)->ns[index] += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin; \
		__atomic_store_n(&line_of[index], __LINE__, __ATOMIC_RELAXED); \
	} while (0)

SEPARATE static uint64_t share_a(struct worker *w, uint64_t x)
{
	RANGE(0, w, x);
	return x;
}

SEPARATE static uint64_t share_b(struct worker *w, uint64_t x)
{
	RANGE(1, w, x);
	return x;
}

SEPARATE static uint64_t share_c(struct worker *w, uint64_t x)
{
	RANGE(2, w, x);
	return x;
}

SEPARATE static uint64_t share_d(struct worker *w, uint64_t x)
{
	RANGE(3, w, x);
	return x;
}

SEPARATE static uint64_t share_two_lines(struct worker *w, uint64_t x)
{
	RANGE(4, w, x);
	RANGE(5, w, x);
	return x;
}

static void *work(void *argument)
{
	struct worker *w = argument;
	uint64_t x = 3;
	int64_t until = (int64_t)(seconds_wanted * 1e9);

	w->tid = (pid_t)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), w->name);
	REGISTER(w->name);
	w->random = (uint64_t)w->tid * 2 + 1;
	while (!stop) {
		/* xorshift64 */
		w->random ^= w->random << 13;
		w->random ^= w->random >> 7;
		w->random ^= w->random << 17;
		w->scale = (1u << SCALE_BITS) - (jitter_percent << SCALE_BITS) / 100;
		w->scale += w->random % ((jitter_percent << SCALE_BITS) / 50 + 1);
		x = share_a(w, x);
		x = share_b(w, x);
		x = share_c(w, x);
		x = share_d(w, x);
		x = share_two_lines(w, x);
		w->cycles++;
		if (cycles_wanted && w->cycles >= cycles_wanted)
			break;
		if (until && now_ns(CLOCK_THREAD_CPUTIME_ID) >= until)
			break;
	}
	/* The result is used, or the chain would be nobody's. */
	if (x == 42)
		w->cycles = 0;
	w->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	UNREGISTER();
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static void usage(const char *why)
{
	fprintf(stderr, "known_shares: %s\n", why);
	exit(2);
}

static void parse_loops(const char *text)
{
	for (int i = 0; i < RANGES; i++) {
		char *end;
		loops[i] = strtoull(text, &end, 10);
		if (end == text || loops[i] == 0 || *end != (i + 1 < RANGES ? ',' : '\0'))
			usage("--loops takes six positive numbers, separated by commas");
		text = end + 1;
	}
}

static void print_worker(const struct worker *w)
{
	int64_t inside = 0;
	for (int i = 0; i < RANGES; i++)
		inside += w->ns[i];
	printf("{\"tid\":%d,\"name\":\"%s\",\"cycles\":%llu,\"cpu_seconds\":%.9f,"
	       "\"elsewhere_seconds\":%.9f,\"ranges\":[",
	       w->tid, w->name, (unsigned long long)w->cycles, w->cpu_ns / 1e9,
	       (w->cpu_ns - inside) / 1e9);
	for (int i = 0; i < RANGES; i++)
		printf("%s{\"function\":\"%s\",\"line\":%d,\"seconds\":%.9f}", i ? "," : "",
		       function_of[i], line_of[i], w->ns[i] / 1e9);
	printf("]}");
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	int threads = 2, forever = 0;
	struct sigaction action = {.sa_handler = on_signal};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--forever")) {
			forever = 1;
			continue;
		}
		if (!strcmp(argv[i], "--threads"))
			threads = atoi(value);
		else if (!strcmp(argv[i], "--cycles"))
			cycles_wanted = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--seconds"))
			seconds_wanted = atof(value);
		else if (!strcmp(argv[i], "--loops"))
			parse_loops(value);
		else if (!strcmp(argv[i], "--jitter"))
			jitter_percent = strtoull(value, NULL, 10);
		else
			usage("unknown option; the head of known_shares.c lists them");
		i++;
	}
	if (threads < 1 || threads > THREADS_MAX)
		usage("--threads takes 1 to 10000");
	if (jitter_percent > 50)
		usage("--jitter takes 0 to 50");
	if (!forever && !cycles_wanted && seconds_wanted <= 0)
		seconds_wanted = 1;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
#ifdef PUBLISHED
	const vmscope_options options = {.size = sizeof options, .name = vmscope_str("known")};
	pthread_t sleeper, poller;
	sigset_t all, before;
	publisher = vmscope_open(&options);
	/* Other signals than the sampler's end no sleep. */
	sigfillset(&all);
	sigdelset(&all, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!publisher || pipe(wake) || pthread_create(&sleeper, NULL, sleep_all_the_time, NULL)
	    || pthread_create(&poller, NULL, reach_safe_points, NULL))
		usage("there is no publisher");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
	for (int i = 0; i < threads; i++) {
		snprintf(workers[i].name, sizeof workers[i].name, "share-%d", i);
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			usage("pthread_create failed");
	}
	if (forever) {
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
#ifdef PUBLISHED
	workers_done = 1;
	close(wake[1]);
	pthread_join(sleeper, NULL);
	pthread_join(poller, NULL);
	printf("{\"interrupted\":%lu,", interrupted);
#else
	putchar('{');
#endif

	printf("\"pid\":%d,\"process_cpu_seconds\":%.9f,\"threads\":[", (int)getpid(),
	       now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	for (int i = 0; i < threads; i++) {
		if (i)
			putchar(',');
		print_worker(&workers[i]);
	}
	printf("]}\n");
	return 0;
}
