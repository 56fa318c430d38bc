/*
 * Processes that fork and exec: with `record` all of them belong to the recording, from
 * their first instructions. The first process
 *
 *   forks `--children` children that spin in `child_spin` (the same program image);
 *   forks one that execs this program as `fork_exec --role again`, with a new address
 *     space at other addresses, and spins in `again_spin`;
 *   forks a chain `--depth` deep, each spinning in `nest_spin` before it forks the next;
 *   execs itself at the end as `--role last`: the same pid, another image, `last_spin`.
 *
 *   fork_exec [--children N=3] [--depth N=3] [--ms CPU_MILLISECONDS_EACH=50]
 *
 * Each process prints a line when it has spun, in one write:
 *   {"pid":, "parent":, "role":"first"|"child"|"again"|"nest"|"last", "cpu_seconds":}
 * cpu_seconds is the pid's, so that of `last` includes `first`, and `again` what it
 * spent before the exec. Build with -O2 -g.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\timul %0, %0\n\t.endr" : "+r"(x))
#elif defined(__aarch64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\tmul %0, %0, %0\n\t.endr" : "+r"(x))
#endif

static int milliseconds = 50;

static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The comment in the assembly keeps functions that are alike from being folded into one. */
#define SPIN(name)                                                             \
	__attribute__((noinline, noclone)) static void name(void)              \
	{                                                                      \
		uint64_t x = 3;                                                \
		__asm__ volatile("/* " #name " */");                           \
		int64_t until = cpu_ns() + milliseconds * INT64_C(1000000);    \
		while (cpu_ns() < until)                                       \
			for (int i = 0; i < 1000; i++)                         \
				CHAIN(x);                                      \
	}

SPIN(first_spin)
SPIN(child_spin)
SPIN(again_spin)
SPIN(nest_spin)
SPIN(last_spin)

static void say(const char *role)
{
	char line[160];
	int length = snprintf(line, sizeof line,
			      "{\"pid\":%d,\"parent\":%d,\"role\":\"%s\",\"cpu_seconds\":%.9f}\n",
			      (int)getpid(), (int)getppid(), role, cpu_ns() / 1e9);
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(3);
}

static void become(const char *role)
{
	char ms[16], path[4096];
	/* Its real path, or the process would be called `exe`. */
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
	if (length < 0)
		_exit(4);
	path[length] = '\0';
	snprintf(ms, sizeof ms, "%d", milliseconds);
	execl(path, "fork_exec", "--role", role, "--ms", ms, (char *)NULL);
	_exit(4);
}

static pid_t fork_or_die(void)
{
	pid_t pid = fork();
	if (pid < 0)
		_exit(5);
	return pid;
}

static void nest(int depth)
{
	pid_t pid;
	if (depth == 0)
		return;
	pid = fork_or_die();
	if (pid == 0) {
		nest_spin();
		say("nest");
		nest(depth - 1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int children = 3, depth = 3;
	const char *role = "first";

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--children"))
			children = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--depth"))
			depth = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--ms"))
			milliseconds = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--role"))
			role = argv[i + 1];
	}
	if (!strcmp(role, "again")) {
		again_spin();
		say("again");
		return 0;
	}
	if (!strcmp(role, "last")) {
		last_spin();
		say("last");
		return 0;
	}
	first_spin();
	say("first");
	for (int i = 0; i < children; i++) {
		if (fork_or_die() == 0) {
			child_spin();
			say("child");
			_exit(0);
		}
	}
	if (fork_or_die() == 0)
		become("again");
	nest(depth);
	while (wait(NULL) > 0)
		;
	become("last");
}
