/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the caller. The devices copy from and to page-locked memory by themselves: large arrays are locked while
 * they are bound, small ones are mirrored (mirror.c), and those that cannot be locked are staged by host functions. */
#include "backends/cuda/memory/memory.h"

#include "base/error.h"

static bool is_pinned(gy_cuda *h, const char *at)
{
    unsigned type;
    int ordinal;
    return gy_cuda_memory_type(h, at, &type, &ordinal) && type == CU_MEMORYTYPE_HOST;
}

static gy_cuda_lock *find_lock(gy_cuda *h, const void *at)
{
    for (size_t i = 0; i < h->locks.count; i++)
        if (h->locks.at[i].uses && h->locks.at[i].at == at)
            return &h->locks.at[i];
    return NULL;
}

static void unbind(gy_cuda *h, gy_cuda_array *array)
{
    gy_cuda_lock *lock = array->locked ? find_lock(h, array->at) : NULL;
    if (lock && --lock->uses == 0 && gy_cuda_use(h, h->first_gpu, NULL) == GANTRY_OK)
        h->d.cuMemHostUnregister((void *)(uintptr_t)lock->at);
    *array = (gy_cuda_array){ .mirror = array->mirror };
}

/* A failure to lock is no error: the memory may be locked already, in part, or not be lockable. */
static bool lock_new(gy_cuda *h, const void *at, uint64_t bytes)
{
    if (!gy_vec_reserve(&h->locks, h->locks.count + 1) ||
        h->d.cuMemHostRegister((void *)(uintptr_t)at, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS)
        return false;
    gy_cuda_lock lock = { .at = at, .bytes = bytes, .uses = 1 };
    for (size_t i = 0; i < h->locks.count; i++) {
        if (h->locks.at[i].uses == 0) {
            h->locks.at[i] = lock;
            return true;
        }
    }
    h->locks.at[h->locks.count++] = lock;
    return true;
}

static void bind(gy_cuda *h, gy_cuda_array *array, const void *at, uint32_t buffer)
{
    const gy_buffer *b = &h->job->graph->buffers.at[buffer];
    uint64_t bytes = b->bytes;
    if (array->at || !at || !bytes || h->memory[gy_buffer_home(h->job->schedule->machine, b)].device != GY_NONE)
        return;
    *array = (gy_cuda_array){ .at = at, .bound = h->job->bound[buffer], .mirror = array->mirror };
    gy_cuda_lock *lock = find_lock(h, at);
    if (lock && lock->bytes == bytes) {
        lock->uses++;
        array->locked = array->pinned = true;
        return;
    }
    array->pinned = is_pinned(h, at) && is_pinned(h, (const char *)at + bytes - 1);
    if (!array->pinned && bytes >= GY_CUDA_REGISTER)
        array->locked = array->pinned = lock_new(h, at, bytes);
}

static bool is_stale(const gy_cuda *h, const gy_cuda_array *array, const void *at, uint32_t buffer)
{
    return array->at != at || array->bound != h->job->bound[buffer];
}

static void drop_stale(gy_cuda *h, uint32_t turn)
{
    gy_cuda_turn *t = &h->turn[turn];
    for (uint32_t b = 0; b < h->job->graph->buffers.count; b++) {
        size_t place = gy_job_index(h->job, turn, b);
        if (is_stale(h, &t->input[b], h->job->input[place], b))
            unbind(h, &t->input[b]);
        if (is_stale(h, &t->output[b], h->job->output[place], b))
            unbind(h, &t->output[b]);
    }
}

/* Stale arrays leave every turn that is not in flight before new ones come: another memory may have an old address. */
gantry_status gy_cuda_bind(gy_cuda *h, uint32_t turn, bool *changed, gantry_error *err)
{
    gy_cuda_turn *t = &h->turn[turn];
    gantry_status status = gy_cuda_use(h, h->first_gpu, err);
    *changed = false;
    if (status || t->version == *h->job->version)
        return status;
    for (uint32_t i = 0; i < h->turns; i++)
        if (h->turn[i].start <= h->ended)
            drop_stale(h, i);
    for (uint32_t b = 0; b < h->job->graph->buffers.count; b++) {
        size_t place = gy_job_index(h->job, turn, b);
        bind(h, &t->input[b], h->job->input[place], b);
        bind(h, &t->output[b], h->job->output[place], b);
    }
    t->version = *h->job->version;
    *changed = true;
    return GANTRY_OK;
}

void gy_cuda_unbind(gy_cuda *h)
{
    for (uint32_t i = 0; h->turn && i < h->turns; i++) {
        for (size_t b = 0; b < h->job->graph->buffers.count; b++) {
            unbind(h, &h->turn[i].input[b]);
            unbind(h, &h->turn[i].output[b]);
        }
    }
    gy_vec_free(&h->locks);
}
