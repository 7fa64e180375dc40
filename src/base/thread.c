/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>

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
