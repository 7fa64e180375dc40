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

enum { HANG_SECONDS = 60, SAMPLES = 100, KIB = 1024 };
#define WARM  0.1
#define EARLY 0.4
#define LATE  0.7
/* The heap in use is exact; pages that hold it are kept by malloc as it likes, and by AddressSanitizer for long. */
#if defined(__SANITIZE_ADDRESS__)
enum { HEAP_SLACK = 64 * KIB, RESIDENT_SLACK = 512 * KIB * KIB };
#else
enum { HEAP_SLACK = 64 * KIB, RESIDENT_SLACK = 4 * KIB * KIB };
#endif

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
static uint64_t free_of(const driver *d, int ordinal)
{
    int device;
    void *context;
    size_t unused = 0, all;
    if (d->get(&device, ordinal) != 0 || d->retain(&context, device) != 0)
        return 0;
    if (d->push(context) == 0) {
        unused = d->info(&unused, &all) == 0 ? unused : 0;
        d->pop(&context);
    }
    d->release(device);
    return unused;
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

static sample take(const settings *s)
{
    driver d;
    sample now = { .heap = mallinfo2().uordblks,
                   .resident = resident(),
                   .descriptors = (uint64_t)count_entries("/proc/self/fd"),
                   .threads = (uint64_t)count_entries("/proc/self/task") };
    if (s->shared || strcmp(s->backend, "cuda") != 0 || !open_driver(&d))
        return now;
    for (int i = 0; i < s->devices && i < MOST_GPUS; i++)
        now.gpu_free[i] = free_of(&d, i);
    return now;
}

double part_done(uint64_t done, double begin, const settings *s)
{
    double counted = (double)done / (double)s->count, timed = (seconds_now() - begin) / s->seconds;
    return counted > timed ? counted : timed;
}

static void lower(uint64_t *to, uint64_t value)
{
    if (*to == 0 || value < *to)
        *to = value;
}

/* So that things in use for a moment only do not count. */
static void least(sample *to, const sample *now)
{
    lower(&to->heap, now->heap);
    lower(&to->resident, now->resident);
    lower(&to->descriptors, now->descriptors);
    lower(&to->threads, now->threads);
    for (int i = 0; i < MOST_GPUS; i++)
        to->gpu_free[i] = now->gpu_free[i] > to->gpu_free[i] ? now->gpu_free[i] : to->gpu_free[i];
}

void look_at(trend *t, double part, const settings *s)
{
    if (part < WARM || part < t->next)
        return;
    sample now = take(s);
    if (part < EARLY)
        least(&t->first, &now);
    if (part > LATE)
        least(&t->last, &now);
    t->taken++;
    t->next = part + 1.0 / SAMPLES;
}

static bool grew(const char *what, uint64_t before, uint64_t after, uint64_t slack)
{
    if (after <= before + slack)
        return false;
    printf("%s grew from %" PRIu64 " to %" PRIu64 "\n", what, before, after);
    return true;
}

bool is_flat(const trend *t, const settings *s)
{
    const sample *a = &t->first, *b = &t->last;
    printf("%" PRIu64 " samples: heap %" PRIu64 " -> %" PRIu64 " KiB, resident %" PRIu64 " -> %" PRIu64
           " KiB, descriptors %" PRIu64 " -> %" PRIu64 ", threads %" PRIu64 " -> %" PRIu64,
           t->taken, a->heap / KIB, b->heap / KIB, a->resident / KIB, b->resident / KIB, a->descriptors, b->descriptors,
           a->threads, b->threads);
    for (int i = 0; i < s->devices && i < MOST_GPUS && a->gpu_free[i]; i++)
        printf(", GPU %d free %" PRIu64 " -> %" PRIu64 " KiB", i, a->gpu_free[i] / KIB, b->gpu_free[i] / KIB);
    printf("\n");
    bool more = grew("the heap", a->heap, b->heap, HEAP_SLACK);
    more |= grew("resident memory", a->resident, b->resident, RESIDENT_SLACK);
    more |= grew("the number of descriptors", a->descriptors, b->descriptors, 0);
    more |= grew("the number of threads", a->threads, b->threads, 0);
    for (int i = 0; i < MOST_GPUS; i++)
        more |= grew("memory in use of a GPU", b->gpu_free[i], a->gpu_free[i], 0);
    return !more && a->descriptors && b->descriptors;
}
