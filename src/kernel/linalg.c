/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/linalg.h"
#include "base/memory.h"
#include "base/thread.h"
#include <sched.h>
#include <sys/mman.h>

/* OpenBLAS maps itself, and a buffer for each thread that calls it at once (BUFFER_SIZE of its param.h, the
 * largest that a CPU wants), with some to spare. */
#define LIBRARY_BYTES ((size_t)64 << 20)
#define BUFFER_BYTES  ((size_t)128 << 20)
/* The C library maps a stack for a thread, and a place to allocate from. */
#define THREAD_BYTES ((size_t)144 << 20)

/* Handles that are open and use OpenBLAS: each is of a device, whose threads may call at the same time as others. Room
 * is the process's, and so is this count. */
static unsigned callers;

/* True if so much could be mapped. It is given back at once: OpenBLAS does the mapping. */
static bool can_map(size_t bytes, int protection)
{
    void *probe = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return probe != MAP_FAILED && munmap(probe, bytes) == 0;
}

/* Handles are of kernels and devices, so there are more of them than devices: for `threads` of each, address space must
 * be there, which is not memory; memory for one. */
static bool has_room(unsigned handles, uint32_t threads)
{
    return can_map(LIBRARY_BYTES + handles * (size_t)threads * (BUFFER_BYTES + THREAD_BYTES), PROT_NONE) &&
           can_map(LIBRARY_BYTES + BUFFER_BYTES, PROT_READ | PROT_WRITE);
}

/* OpenBLAS starts a thread for each CPU that the thread that loads it may use, before it can be told to use one. */
static bool open_with_one_thread(gy_module *module)
{
    cpu_set_t before, one;
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    int cpu = sched_getcpu();
    CPU_ZERO(&one);
    if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET((size_t)cpu, &one);
    bool narrowed = known && CPU_COUNT(&one) == 1 && sched_setaffinity(0, sizeof one, &one) == 0;
    bool opened = gy_module_open(module, "gantry-blas", NULL) == GANTRY_OK;
    if (narrowed)
        sched_setaffinity(0, sizeof before, &before);
    return opened;
}

/* The first call maps the first buffer: now, while there is room. */
static const gy_linalg *take_buffer(const gy_linalg *table)
{
    float one = 1;
    table->potrf(GANTRY_F32, (gy_matrix){ &one, 1, 1, 1 });
    return table;
}

gantry_status gy_linalg_open(void **handle, const gy_linalg *plain)
{
    gy_linalg_handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return GANTRY_E_NOMEM;
    h->table = plain;
    unsigned count = __atomic_add_fetch(&callers, 1, __ATOMIC_RELAXED);
    if (has_room(count, 1) && open_with_one_thread(&h->module)) {
        h->table = take_buffer(h->module.table);
        h->alone = !has_room(count, gy_thread_processors());
    } else {
        __atomic_sub_fetch(&callers, 1, __ATOMIC_RELAXED);
    }
    *handle = h;
    return GANTRY_OK;
}

/* The module and OpenBLAS stay in the process (they are linked with -z nodelete): other libraries may use OpenBLAS, and
 * its threads, if it has any, hold on to it. */
void gy_linalg_close(void *handle)
{
    gy_linalg_handle *h = handle;
    if (h && h->module.handle)
        __atomic_sub_fetch(&callers, 1, __ATOMIC_RELAXED);
    if (h)
        gy_module_close(&h->module);
    gy_free(h);
}
