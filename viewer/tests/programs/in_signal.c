/* A signal's handler that runs for ever: main -> outer -> inner, interrupted -> handler -> in_handler.
   Without frame pointers, so that only the registers saved by the kernel lead from the handler to the
   interrupted code. With the argument `crash`, the handler ends the process by SIGSEGV. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long x;
static volatile int crashes;
static int *volatile nowhere;

__attribute__((noinline)) static void in_handler(void)
{
    while (!crashes)
        x++;
    *nowhere = 1;
    x--;
}

static void handler(int number)
{
    if (!crashes)
        write(1, "ready\n", 6);
    in_handler();
    x -= number;
}

__attribute__((noinline)) static long inner(long n)
{
    while (x != -77) {
        x += n;
        n = n * 3 + x;
    }
    return n;
}

__attribute__((noinline)) static long outer(long n)
{
    return inner(n) + 1;
}

int main(int count, char **arguments)
{
    struct sigaction action = {.sa_handler = handler};
    struct itimerval once = {{0, 0}, {0, 50000}};
    crashes = count > 1 && strcmp(arguments[1], "crash") == 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &once, NULL);
    return (int)outer(5);
}
