/*
 * One thread at work in `left_work`, without end; the main thread ends on SIGUSR1.
 * No shares are known.
 *
 * Prints `ready PID` first. Build with -O2 -g -pthread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static void *left_work(void *argument)
{
	for (volatile uint64_t x = 3;;)
		x = x * x;
	return argument;
}

int main(void)
{
	pthread_t thread;
	sigset_t leave;

	sigemptyset(&leave);
	sigaddset(&leave, SIGUSR1);
	sigprocmask(SIG_BLOCK, &leave, NULL);
	if (pthread_create(&thread, NULL, left_work, NULL))
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	int signal;
	sigwait(&leave, &signal);
	pthread_exit(NULL);
}
