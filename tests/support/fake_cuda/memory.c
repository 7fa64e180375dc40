/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices: pages that can be touched only while a device works, with a page on both sides that never can.
 * Addresses are not used again. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct block {
    char *at;
    size_t bytes, mapped;
    int device; /* -1: host */
    bool registered, open, allowed;
    struct block *next;
} block;

static block *blocks;

enum { ALIGN = 256, SLACK = 0xEE };

/* The byte that fills new memory: large and small numbers, whatever the type. */
static int poison(void)
{
    return draw() % 2 ? 0xA5 : 0x5A;
}

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

size_t memory_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *begin_of(const block *b)
{
    return b->at + up(b->bytes, ALIGN) - (b->mapped - 2 * memory_page());
}

static void protect(block *b, bool open)
{
    if (b->device >= 0 && b->open != open) {
        mprotect(begin_of(b), b->mapped - 2 * memory_page(), open ? PROT_READ | PROT_WRITE : PROT_NONE);
        b->open = open;
    }
}

static block *add(int device, size_t bytes)
{
    block *b = calloc(1, sizeof *b);
    *b = (block){ .bytes = bytes, .device = device, .next = blocks };
    blocks = b;
    return b;
}

/* The end is at the end of a page. */
static block *map_device(int device, size_t bytes)
{
    block *b = add(device, bytes);
    b->mapped = up(up(bytes, ALIGN), memory_page()) + 2 * memory_page();
    char *map = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        wrong("no address space for %zu bytes", bytes);
    b->at = map + b->mapped - memory_page() - up(bytes, ALIGN);
    protect(b, true);
    memset(b->at, poison(), bytes);
    memset(b->at + bytes, SLACK, up(bytes, ALIGN) - bytes);
    protect(b, false);
    return b;
}

CUresult memory_new(void **to, int device, size_t bytes)
{
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0) {
        block *b = add(device, bytes);
        b->at = aligned_alloc(memory_page(), up(bytes, memory_page()));
        memset(b->at, poison(), bytes);
        *to = b->at;
        return CUDA_SUCCESS;
    }
    if (fake.used[device] + bytes > fake.bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.used[device] += bytes;
    *to = map_device(device, bytes)->at;
    return CUDA_SUCCESS;
}

static block **find(const void *at)
{
    block **link = &blocks;
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    return link;
}

static void check_slack(block *b)
{
    protect(b, true);
    for (size_t i = b->bytes; i < up(b->bytes, ALIGN); i++)
        if ((unsigned char)b->at[i] != SLACK)
            wrong("byte %zu behind an allocation of %zu bytes was written", i - b->bytes, b->bytes);
}

CUresult memory_delete(void *at, bool host)
{
    block **link = find(at), *b = *link;
    if (!b || b->registered || (b->device < 0) != host)
        wrong("%p is freed and was not allocated, or is of the other kind", at);
    if (queued() && !getenv("FAKE_CUDA_BESIDE"))
        wrong("memory is freed while %zu pieces of work are queued", queued());
    if (host) {
        free(b->at);
    } else {
        check_slack(b);
        fake.used[b->device] -= b->bytes;
        protect(b, false);
        madvise(begin_of(b), b->mapped - 2 * memory_page(), MADV_DONTNEED); /* the addresses stay taken */
    }
    *link = b->next;
    free(b);
    return CUDA_SUCCESS;
}

/* Whole pages are locked. */
static bool shares_page(const block *b, const char *at, size_t bytes)
{
    uintptr_t size = memory_page(), first = (uintptr_t)at / size, last = ((uintptr_t)at + bytes - 1) / size;
    return (uintptr_t)b->at / size <= last && ((uintptr_t)b->at + b->bytes - 1) / size >= first;
}

CUresult memory_register(void *at, size_t bytes)
{
    for (block *b = blocks; b; b = b->next)
        if (b->device < 0 && shares_page(b, at, bytes))
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    block *b = add(-1, bytes);
    b->at = at;
    b->registered = true;
    return CUDA_SUCCESS;
}

CUresult memory_unregister(void *at)
{
    block **link = find(at), *b = *link;
    if (!b || !b->registered)
        wrong("%p is unregistered and was not registered", at);
    *link = b->next;
    free(b);
    return CUDA_SUCCESS;
}

int memory_alive(void)
{
    int count = 0;
    for (block *b = blocks; b; b = b->next)
        count++;
    return count;
}

static block *containing(const char *at, size_t bytes)
{
    block *b = blocks;
    while (b && !(at >= b->at && at + bytes <= b->at + b->bytes))
        b = b->next;
    return b;
}

const void *memory_block(const void *at, size_t *bytes)
{
    const block *b = containing(at, 1);
    *bytes = b ? b->bytes : 0;
    return b ? b->at : NULL;
}

int memory_type(const void *at, int *device)
{
    const block *b = containing(at, 1);
    *device = b ? b->device : -1;
    return !b ? 0 : b->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

void memory_check(const void *at, size_t bytes, int device, const char *what)
{
    const block *b = containing(at, bytes);
    if (!b)
        wrong("%s: %zu bytes at %p lie in no %s", what, bytes, at, device < 0 ? "page-locked memory" : "allocation");
    if (b->device != device)
        wrong("%s: %zu bytes at %p are of device %d, not of %d", what, bytes, at, b->device, device);
}

void memory_open(const bool *devices)
{
    for (block *b = blocks; b; b = b->next)
        if (b->device >= 0)
            protect(b, devices[b->device]);
}

void memory_close(void)
{
    static const bool none[MOST_DEVICES];
    memory_open(none);
}

void memory_allow(const bool *devices)
{
    memory_close();
    for (block *b = blocks; b; b = b->next)
        b->allowed = b->device >= 0 && devices[b->device];
}

bool memory_allowed(const char *at)
{
    for (block *b = blocks; b; b = b->next)
        if (b->device >= 0 && at >= begin_of(b) && at < begin_of(b) + b->mapped - 2 * memory_page())
            return b->allowed;
    return false;
}

/* A page that the kernel may touch, of any allocation; NULL: there is none. */
char *memory_any(uint64_t number)
{
    size_t count = 0;
    for (block *b = blocks; b; b = b->next)
        count += b->device >= 0 && b->allowed;
    size_t i = count ? (size_t)(number % count) : 0;
    for (block *b = blocks; b && count; b = b->next)
        if (b->device >= 0 && b->allowed && i-- == 0)
            return begin_of(b) + number / count % (b->mapped / memory_page() - 2) * memory_page();
    return NULL;
}

uint64_t memory_load(const char *at)
{
    block *b = containing(at, sizeof(uint64_t));
    bool open = b->open;
    protect(b, true);
    uint64_t value = __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
    protect(b, open);
    return value;
}

void memory_store(char *at, uint64_t value)
{
    block *b = containing(at, sizeof value);
    bool open = b->open;
    protect(b, true);
    __atomic_store_n((uint64_t *)(void *)at, value, __ATOMIC_RELEASE);
    protect(b, open);
}
