/* Maps a file jit-PID.dump executable into itself, as a VM that writes a jitdump does.
 *
 *   marker FOLDER WHAT...
 *
 * where each WHAT is one of
 *   map        make FOLDER/jit-PID.dump with the pid in it, and map a page of it r-x
 *   unlink     ... and take its name away
 *   again=N    run this program again in this process, N times in all
 *   wait       wait for the end of stdin
 *   sleep=MS
 *   storm=N    map and unmap a file, and make memory executable, N times
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[4096];
static int file = -1;

static void *map(int protection)
{
    void *page = mmap(NULL, 4096, protection, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return page;
}

static void begin(const char *folder)
{
    /* In a folder of its own: what this process was before an exec may have left one, and be
       read still. */
    char own[sizeof path - 32];
    snprintf(own, sizeof own, "%s/XXXXXX", folder);
    if (!mkdtemp(own)) {
        perror(own);
        exit(2);
    }
    snprintf(path, sizeof path, "%s/jit-%d.dump", own, (int)getpid());
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || dprintf(file, "dump of %d\n", (int)getpid()) < 0) {
        perror(path);
        exit(2);
    }
    map(PROT_READ | PROT_EXEC);
}

static void storm(int times)
{
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < times; i++) {
        munmap(map(PROT_READ | PROT_EXEC), 4096);
        mprotect(memory, 4096, PROT_READ | PROT_EXEC);
        mprotect(memory, 4096, PROT_READ);
    }
}

int main(int count, char **words)
{
    for (int i = 2; i < count; i++) {
        char *word = words[i];
        char *value = strchr(word, '=');
        int number = value ? atoi(value + 1) : 0;
        if (!strcmp(word, "map")) {
            begin(words[1]);
        } else if (!strcmp(word, "unlink")) {
            unlink(path);
        } else if (!strcmp(word, "wait")) {
            char byte;
            while (read(0, &byte, 1) > 0) {
            }
        } else if (!strncmp(word, "sleep=", 6)) {
            usleep((useconds_t)number * 1000);
        } else if (!strncmp(word, "storm=", 6)) {
            storm(number);
        } else if (!strncmp(word, "again=", 6) && number > 0) {
            snprintf(value + 1, strlen(value), "%d", number - 1);
            execv("/proc/self/exe", words);
        }
    }
    return 0;
}
