/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that nobody can trust, by preloading: SURROUNDINGS_CLOCK says what they do from one look to the next.
 * "forwards": an hour more every 8th time; "backwards": an hour less; "still": no look shows a change; "random": any of
 * these. Waiting for a time means the time that these clocks show, so that it is over when it would be.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* the program's own are taken before those of libraries */

enum { EVERY = 8, HOUR = 3600, YEAR = 24 * 365 };

static atomic_int looks;
static atomic_llong hours = YEAR; /* no clock gets before its beginning */

static int really(clockid_t clock, struct timespec *to)
{
    return (int)syscall(SYS_clock_gettime, clock, to);
}

static void turn(const char *way)
{
    int look = atomic_fetch_add(&looks, 1);
    if (look % EVERY != EVERY - 1)
        return;
    bool back = strcmp(way, "backwards") == 0 || (strcmp(way, "random") == 0 && look / EVERY % 3 == 1);
    atomic_fetch_add(&hours, back ? -1 : 1);
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    const char *way = getenv("SURROUNDINGS_CLOCK");
    if (!way)
        return really(clock, to);
    if (strcmp(way, "still") == 0) {
        *to = (struct timespec){ .tv_sec = 1000000 };
        return 0;
    }
    turn(way);
    int code = really(clock, to);
    to->tv_sec += (time_t)atomic_load(&hours) * HOUR;
    return code;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int code = clock_gettime(CLOCK_REALTIME, &now);
    *to = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return code;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    *(void **)&wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec at = *until;
    const char *way = getenv("SURROUNDINGS_CLOCK");
    if (way && strcmp(way, "still") != 0)
        at.tv_sec -= (time_t)atomic_load(&hours) * HOUR;
    return wait(cond, mutex, &at);
}
