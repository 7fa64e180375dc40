/* SPDX-License-Identifier: Apache-2.0 */
#include "soak.h"

#include "../support/entries.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HANG_SECONDS = 60, SAMPLES = 100 };

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- what hangs ---- */

static const char *volatile moving;

static void give_up(int number)
{
    (void)number;
    const char *parts[] = { "nothing moved for a minute: ", moving, "\n" };
    for (int i = 0; i < 3; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    _exit(EXIT_HANGS);
}

void still_moving(const char *where)
{
    moving = where;
    signal(SIGALRM, give_up);
    alarm(HANG_SECONDS);
}

/* ---- the memory of GPUs, by the driver ---- */

typedef struct driver {
    int (*get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*info)(size_t *unused, size_t *all);
} driver;

static void *find(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static bool open_driver(driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&d->get = find(library, "cuDeviceGet");
    *(void **)&d->retain = find(library, "cuDevicePrimaryCtxRetain");
    *(void **)&d->release = find(library, "cuDevicePrimaryCtxRelease_v2");
    d->release = d->release ? d->release : (int (*)(int))(uintptr_t)find(library, "cuDevicePrimaryCtxRelease");
    *(void **)&d->push = find(library, "cuCtxPushCurrent_v2");
    *(void **)&d->pop = find(library, "cuCtxPopCurrent_v2");
    *(void **)&d->info = find(library, "cuMemGetInfo_v2");
    return d->get && d->retain && d->release && d->push && d->pop && d->info;
}

/* 0: not known. The contexts are there, since a run is open. */
static uint64_t used_of(const driver *d, int ordinal)
{
    int device;
    void *context;
    size_t unused = 0, all = 0;
    if (d->get(&device, ordinal) != 0 || d->retain(&context, device) != 0)
        return 0;
    if (d->push(context) == 0) {
        all = d->info(&unused, &all) == 0 ? all : 0;
        d->pop(&context);
    }
    d->release(device);
    return all > unused ? all - unused : 0;
}

/* ---- samples ---- */

static uint64_t resident(void)
{
    unsigned long long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%llu %llu", &all, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Threads that the driver made have its name; those that we make have the program's. */
static bool is_drivers(const char *task)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "r");
    bool drivers = file && fgets(name, sizeof name, file) && strncmp(name, "cuda", strlen("cuda")) == 0;
    if (file)
        fclose(file);
    return drivers;
}

static void count_threads(sample *to)
{
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            to->of[is_drivers(e->d_name) ? TREND_DRIVER_THREADS : TREND_THREADS]++;
    if (d)
        closedir(d);
}

static sample take(const settings *s)
{
    driver d;
    sample now = { 0 };
    now.of[TREND_HEAP] = mallinfo2().uordblks;
    now.of[TREND_RESIDENT] = resident();
    now.of[TREND_DESCRIPTORS] = (uint64_t)count_entries("/proc/self/fd");
    count_threads(&now);
    if (s->shared || strcmp(s->backend, "cuda") != 0 || !open_driver(&d))
        return now;
    for (int i = 0; i < s->devices && i < MOST_GPUS; i++)
        now.of[TREND_GPU + i] = used_of(&d, i);
    return now;
}

double part_done(uint64_t done, double begin, const settings *s)
{
    double counted = (double)done / (double)s->count, timed = (seconds_now() - begin) / s->seconds;
    return counted > timed ? counted : timed;
}

void look_at(trend *t, double part, const settings *s)
{
    if (part < t->next)
        return;
    sample now = take(s);
    trend_add(t, part, &now);
    t->next = part + 1.0 / SAMPLES;
}

bool is_flat(const trend *t, const settings *s)
{
    return trend_is_flat(t, strcmp(s->backend, "cuda") == 0);
}
