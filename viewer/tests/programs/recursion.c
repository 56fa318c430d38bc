/*
 * Known call chains, with frame pointers. Two phases alternate, half of the CPU time each:
 *
 *   chain      main > chain_a > chain_b > chain_c        samples lie in chain_c
 *   deep       main > dive > dive > ... > dive > bottom  samples lie in bottom
 *
 * `dive` is called --depth times, more than the bound of a recorded chain (perf and the
 * kernel: 127), so that chain is truncated at its outer end, and that is to be counted.
 * Nothing is inlined and no call is a jump.
 *
 *   recursion [--depth N=300] [--seconds CPU=1]
 *
 * Prints {"pid":, "depth":, "chain_seconds":, "deep_seconds":} of CPU time, each with its
 * descent and its return. Build with -O1 -g -fno-omit-frame-pointer
 * -fno-optimize-sibling-calls; on aarch64 -mno-omit-leaf-frame-pointer too.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\timul %0, %0\n\t.endr" : "+r"(x))
#elif defined(__aarch64__)
#define CHAIN(x) __asm__ volatile(".rept 200\n\tmul %0, %0, %0\n\t.endr" : "+r"(x))
#endif

#define SEPARATE __attribute__((noinline, noclone))
/*
 * Asks for the frame's address, so that there is one: with all its options gcc sets none up
 * in a function that calls nothing, and the caller of such a function is missing in a
 * chain by frame pointers. After a call it is also work, so that the call is no jump.
 */
#define KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)) : "memory")

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + t.tv_nsec / 1e9;
}

/* Some 10 ms. */
SEPARATE static uint64_t chain_c(uint64_t x)
{
	__asm__ volatile("/* chain_c: not to be folded with bottom */");
	for (int i = 0; i < 50000; i++)
		CHAIN(x);
	KEEP_FRAME();
	return x;
}

SEPARATE static uint64_t chain_b(uint64_t x)
{
	x = chain_c(x + 1);
	KEEP_FRAME();
	return x;
}

SEPARATE static uint64_t chain_a(uint64_t x)
{
	x = chain_b(x + 1);
	KEEP_FRAME();
	return x;
}

SEPARATE static uint64_t bottom(uint64_t x)
{
	for (int i = 0; i < 50000; i++)
		CHAIN(x);
	KEEP_FRAME();
	return x;
}

SEPARATE static uint64_t dive(int depth, uint64_t x)
{
	x = depth > 1 ? dive(depth - 1, x) : bottom(x);
	KEEP_FRAME();
	return x;
}

int main(int argc, char **argv)
{
	int depth = 300;
	double seconds = 1, chain = 0, deep = 0;
	uint64_t x = 3;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--depth"))
			depth = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
	}
	while (chain + deep < seconds) {
		double begin = cpu_seconds(), middle;
		x = chain_a(x);
		middle = cpu_seconds();
		x = dive(depth, x);
		deep += cpu_seconds() - middle;
		chain += middle - begin;
	}
	printf("{\"pid\":%d,\"depth\":%d,\"chain_seconds\":%.9f,\"deep_seconds\":%.9f}\n",
	       (int)getpid(), depth, chain, deep);
	return x == 42;
}
