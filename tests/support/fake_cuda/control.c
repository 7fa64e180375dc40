/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the fake, errors on demand, and what tests ask. */
#include "fake.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void lock(void)
{
    pthread_mutex_lock(&mutex);
}

void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fake_cuda: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t draw(void)
{
    uint64_t z = fake.random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- counting and failing ---- */

enum { MOST_NAMES = 128, MOST_FAILURES = 8 };
static struct counter {
    char name[64];
    int calls;
} counters[MOST_NAMES];
static struct failure {
    char name[64];
    int left;
    CUresult code;
} failures[MOST_FAILURES];

static struct counter *counter_of(const char *name)
{
    int i = 0;
    while (counters[i].name[0] && strcmp(counters[i].name, name) != 0)
        i++;
    if (i == MOST_NAMES - 1 || strlen(name) >= sizeof counters[i].name)
        wrong("no room to count calls of %s", name);
    snprintf(counters[i].name, sizeof counters[i].name, "%s", name);
    return &counters[i];
}

CUresult count_call(const char *name)
{
    counter_of(name)->calls++;
    if (name[0] == 'c' && name[1] == 'u' && isupper((unsigned char)name[2])) {
        fake.correlation++;
        if (fake.watch.call)
            fake.watch.call(name, fake.correlation);
    }
    CUresult code = fake.sticky;
    for (int i = 0; i < MOST_FAILURES; i++)
        if (failures[i].left > 0 && strcmp(failures[i].name, name) == 0 && --failures[i].left == 0)
            code = failures[i].code;
    return code;
}

void fakeCudaFail(const char *spec)
{
    lock();
    memset(failures, 0, sizeof failures);
    for (int i = 0; spec && *spec && i < MOST_FAILURES; i++) {
        int code = 0, length = 0;
        if (sscanf(spec, "%63[^:]:%d:%d%n", failures[i].name, &failures[i].left, &code, &length) != 3)
            wrong("cannot read \"%s\"; write NAME:CALL:CODE", spec);
        failures[i].code = (CUresult)code;
        spec += length;
        spec += *spec == ',';
    }
    fake.sticky = CUDA_SUCCESS;
    unlock();
}

void fakeCudaStall(int stalled)
{
    lock();
    fake.stalled = stalled != 0;
    unlock();
}

void fakeCudaPatience(int slices)
{
    lock();
    fake.patience = slices;
    unlock();
}

int fakeCudaCalls(const char *name)
{
    lock();
    int calls = counter_of(name)->calls;
    unlock();
    return calls;
}

void fakeCudaCount(const char *name, int more)
{
    lock();
    counter_of(name)->calls += more;
    unlock();
}

void fakeCudaSeed(uint64_t seed)
{
    lock();
    fake.random = seed * 0x2545F4914F6CDD1Du + 1;
    unlock();
}

/* ---- other libraries ---- */

int fakeCudaInjected(const char *name)
{
    lock();
    CUresult code = count_call(name);
    unlock();
    return (int)code;
}

int fakeCudaDeviceOf(CUstream stream)
{
    return stream->context->device;
}

int fakeCudaCurrent(void)
{
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    return context ? context->device : -1;
}

void fakeCudaCheck(const void *at, size_t bytes, int device, const char *what)
{
    memory_check(at, bytes, device, what);
}

void fakeCudaWrong(const char *text)
{
    wrong("%s", text);
}

void fakeCudaLock(void)
{
    lock();
}

void fakeCudaUnlock(void)
{
    unlock();
}

uint64_t fakeCudaDraw(void)
{
    return draw();
}

/* ---- who watches ---- */

void fakeCudaWatchBy(const fakeCudaWatch *watch)
{
    lock();
    static const fakeCudaWatch nobody;
    fake.watch = watch ? *watch : nobody;
    unlock();
}

void tell_node(const struct CUgraph_st *g, const work *w, uint64_t original)
{
    CUgraphNodeType type = w->kind == KERNEL || w->kind == JOB ? CU_GRAPH_NODE_TYPE_KERNEL
                           : w->kind == SET                    ? CU_GRAPH_NODE_TYPE_MEMSET
                           : w->kind == HOST                   ? CU_GRAPH_NODE_TYPE_HOST
                                                               : CU_GRAPH_NODE_TYPE_MEMCPY;
    if (fake.watch.node)
        fake.watch.node((CUgraph)(uintptr_t)g, (CUgraphNode)(uintptr_t)w->node, (CUgraphNode)(uintptr_t)original, type);
}

void tell_done(const work *w, int64_t start, int64_t end)
{
    fakeCudaPiece piece = { .device = w->device, .correlation = w->correlation, .start = start, .end = end };
    piece.node = (CUgraphNode)(uintptr_t)w->node;
    piece.kind = w->kind == SET ? FAKE_SET : w->kind == PEER ? FAKE_PEER : FAKE_COPY;
    piece.kind = w->kind == KERNEL || w->kind == JOB ? FAKE_KERNEL : piece.kind;
    bool word = w->kind == WAIT || w->kind == WRITE;
    if (fake.watch.done && w->kind != NOTHING && w->kind != HOST && !word)
        fake.watch.done(&piece);
}

/* ---- devices ---- */

int fakeCudaAlive(char *text, size_t size)
{
    lock();
    int contexts = 0;
    for (int i = 0; i < MOST_DEVICES; i++)
        contexts += fake.context[i].retained;
    int sum = contexts + fake.alive_streams + fake.alive_events + fake.alive_modules + fake.alive_graphs +
              fake.alive_execs + memory_alive();
    if (size) {
        snprintf(text, size, "%d contexts, %d streams, %d events, %d modules, %d graphs, %d executable, %d memories",
                 contexts, fake.alive_streams, fake.alive_events, fake.alive_modules, fake.alive_graphs,
                 fake.alive_execs, memory_alive());
    }
    unlock();
    return sum;
}

static bool has_peer(const char *peer, int from, int to)
{
    char pair[24];
    snprintf(pair, sizeof pair, "%d%d", from, to);
    return !peer || strcmp(peer, "all") == 0 || strstr(peer, pair);
}

void fakeCudaDevices(int devices, const char *peer, uint64_t bytes)
{
    char text[160];
    if (fakeCudaAlive(text, sizeof text))
        wrong("devices change while these are alive: %s", text);
    lock();
    fake.ready = true;
    fake.devices = devices < MOST_DEVICES ? devices : MOST_DEVICES;
    fake.bytes = bytes ? bytes : UINT64_C(1) << 30;
    fake.sticky = CUDA_SUCCESS;
    for (int i = 0; i < MOST_DEVICES; i++) {
        fake.context[i] = (struct CUctx_st){ .device = i };
        for (int k = 0; k < MOST_DEVICES; k++)
            fake.peer[i][k] = i != k && has_peer(peer, i, k);
    }
    unlock();
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

CUresult cuInit(unsigned int flags)
{
    lock();
    if (!fake.ready) {
        fakeCudaDevices((int)number("FAKE_CUDA_DEVICES", 1), getenv("FAKE_CUDA_PEER"), number("FAKE_CUDA_MEMORY", 0));
        fakeCudaSeed(number("FAKE_CUDA_SEED", 1));
        fakeCudaFail(getenv("FAKE_CUDA_FAIL"));
    }
    if (!fake.loaded) {
        fake.loaded = true;
        load_kernels(getenv("FAKE_CUDA_KERNELS"));
    }
    CUresult code = flags ? CUDA_ERROR_INVALID_VALUE : count_call("cuInit");
    unlock();
    return code ? code : fake.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static void __attribute__((destructor)) check_alive(void)
{
    char text[160];
    if (fakeCudaAlive(text, sizeof text))
        wrong("left behind: %s", text);
    forget_all();
}
