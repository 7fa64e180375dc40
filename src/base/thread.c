/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

int gy_thread_create(pthread_t *thread, void *(*function)(void *data), void *data)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    sigset_t most, before;
    sigfillset(&most);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&most, faults[i]);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    int code = pthread_create(thread, NULL, function, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

uint32_t gy_thread_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return count > 1 ? (uint32_t)count : 1;
}

/* The file has ranges, "0-3,8-11"; a range without an end is one processor. */
static uint32_t count_allowed(FILE *ranges, const cpu_set_t *allowed)
{
    uint32_t count = 0;
    for (int first, last; fscanf(ranges, "%d", &first) == 1;) {
        int next = getc(ranges);
        last = first;
        if (next == '-' && fscanf(ranges, "%d", &last) == 1)
            getc(ranges); /* the comma, or the end of the line */
        for (int i = first < 0 ? 0 : first; i <= last && i < CPU_SETSIZE; i++)
            count += CPU_ISSET((size_t)i, allowed) ? 1 : 0;
    }
    return count;
}

uint32_t gy_thread_processors_of(int node)
{
    char path[64];
    cpu_set_t set;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *ranges = node < 0 || sched_getaffinity(0, sizeof set, &set) ? NULL : fopen(path, "re");
    uint32_t count = ranges ? count_allowed(ranges, &set) : 0;
    if (ranges)
        fclose(ranges);
    return count ? count : gy_thread_processors();
}
