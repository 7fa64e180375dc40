/* SPDX-License-Identifier: Apache-2.0 */
/* One allocation per memory of the machine, at whose start the schedule's offsets count; and who may copy to whom. */
#include "backends/cuda/memory/memory.h"

#include "base/error.h"
#include "base/numa.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static gantry_status fail_room(gy_cuda *h, CUresult code, uint32_t device, const char *what, uint64_t bytes,
                               gantry_error *err)
{
    if (code != CUDA_ERROR_OUT_OF_MEMORY)
        return gy_cuda_fail(h, code, device, "cannot allocate memory", err);
    size_t unused = 0, all = 0;
    char want[32], have[32];
    h->d.cuMemGetInfo(&unused, &all);
    gy_fail(
        err, GANTRY_E_CAPACITY, NULL,
        "device \"%s\" needs %s for %s and has %s free; close what else uses it, schedule with less (--max-memory), "
        "or take more devices or parts",
        h->job->schedule->machine->device[device].id, gy_bytes_text(want, sizeof want, bytes), what,
        gy_bytes_text(have, sizeof have, unused));
    if (err) {
        err->native = (int32_t)code;
        err->device = (int32_t)device;
    }
    return GANTRY_E_CAPACITY;
}

gantry_status gy_cuda_allocate(gy_cuda *h, CUdeviceptr *to, uint32_t device, uint64_t bytes, const char *what,
                               gantry_error *err)
{
    gantry_status status = gy_cuda_use(h, device, err);
    CUresult code = status ? CUDA_SUCCESS : h->d.cuMemAlloc(to, bytes ? bytes : 1);
    if (code != CUDA_SUCCESS) {
        *to = 0;
        return fail_room(h, code, device, what, bytes, err);
    }
    return status;
}

static gantry_status pinned_near(gy_cuda *h, void **to, uint64_t bytes, int node, gantry_error *err)
{
    gy_numa before;
    GY_TRY(gy_cuda_use(h, h->first_gpu, err));
    gy_numa_prefer(&before, node);
    CUresult code = h->d.cuMemHostAlloc(to, bytes ? bytes : 1, CU_MEMHOSTALLOC_PORTABLE);
    gy_numa_restore(&before);
    if (code != CUDA_SUCCESS) {
        char size[32];
        *to = NULL;
        gy_fail(err, GANTRY_E_NOMEM, NULL, "cannot allocate %s of page-locked host memory",
                gy_bytes_text(size, sizeof size, bytes));
        if (err)
            err->native = (int32_t)code;
        return GANTRY_E_NOMEM;
    }
    return GANTRY_OK;
}

gantry_status gy_cuda_pinned(gy_cuda *h, void **to, uint64_t bytes, gantry_error *err)
{
    return pinned_near(h, to, bytes, -1, err);
}

/* The GPU of the memory. Memory 0 and those without a GPU are host memory. */
static uint32_t gpu_of(const gantry_machine *m, uint32_t memory)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu && m->device[i].memory == memory)
            return memory == 0 ? GY_NONE : i;
    return GY_NONE;
}

void gy_cuda_memory_owners(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < h->memories; i++) {
        uint32_t device = h->memory[i].device = gpu_of(s->machine, i);
        bool mine = gy_cuda_mine(h, s->machine->memory[i].rank);
        if (device != GY_NONE && mine && h->job->room && h->job->room[i])
            h->device[device].used = true;
    }
    for (size_t i = 0; i < s->instances.count; i++) {
        uint32_t device = h->memory[s->instances.at[i].memory].device;
        if (device != GY_NONE && gy_cuda_mine(h, s->machine->memory[s->instances.at[i].memory].rank))
            h->device[device].used = true;
    }
}

static uint64_t slab_bytes(const gy_cuda *h, uint32_t memory)
{
    const gantry_schedule *s = h->job->schedule;
    return h->job->room ? h->job->room[memory] : memory < s->slab.count ? s->slab.at[memory] : 0;
}

static gantry_status make_slab(gy_cuda *h, uint32_t memory, gantry_error *err)
{
    gy_cuda_memory *m = &h->memory[memory];
    if (!gy_cuda_mine(h, h->job->schedule->machine->memory[memory].rank))
        return GANTRY_OK;
    if (m->device == GY_NONE)
        return gy_cuda_pinned(h, (void **)&m->host, slab_bytes(h, memory), err);
    return h->device[m->device].used ? gy_cuda_allocate(h, &m->base, m->device, slab_bytes(h, memory), "its slab", err)
                                     : GANTRY_OK;
}

/* Uses the memory of another run that is open, and that is closed after this one. */
static void borrow(gy_cuda *h, const gy_cuda *from)
{
    for (uint32_t i = 0; i < h->memories; i++) {
        h->memory[i].base = from->memory[i].base;
        h->memory[i].host = from->memory[i].host;
    }
    h->staging = from->staging;
    h->borrowed = true;
}

static gantry_status make_slabs(gy_cuda *h, gantry_error *err)
{
    uint64_t staging = h->job->room ? h->job->room[h->memories] : h->job->schedule->staging;
    gantry_status status = GANTRY_OK;
    if (h->job->beside) {
        borrow(h, h->job->beside);
        return GANTRY_OK;
    }
    for (uint32_t i = 0; i < h->memories && status == GANTRY_OK; i++)
        status = make_slab(h, i, err);
    return status || !staging ? status : gy_cuda_pinned(h, (void **)&h->staging, staging, err);
}

static uint64_t words_of(const gy_cuda *h, uint32_t device)
{
    const gy_cuda_device *d = &h->device[device];
    return d->gpu ? (uint64_t)d->launches * h->turns : 0;
}

/* Allocates a status word for each op that launches on the device, for each turn: words are not reset while starts
 * overlap, and what is launched may write one to report success. The host's are one block for all devices; those that
 * are fetched lie in memory of their GPU as well. */
static gantry_status make_words(gy_cuda *h, gantry_error *err)
{
    uint64_t words = 0;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        uint64_t bytes = (uint64_t)h->device[i].fetched * h->turns * sizeof(int32_t);
        status = bytes ? gy_cuda_allocate(h, &h->device[i].status, i, bytes, "status words", err) : GANTRY_OK;
        words += words_of(h, i);
    }
    status = status || !words ? status : gy_cuda_pinned(h, (void **)&h->host_status, words * sizeof(int32_t), err);
    if (status || !words)
        return status;
    memset(h->host_status, 0, words * sizeof(int32_t));
    int32_t *next = h->host_status;
    for (uint32_t i = 0; i < h->devices; i++) {
        h->device[i].host_status = next;
        next += words_of(h, i);
    }
    h->dirty_words = true;
    return GANTRY_OK;
}

/* Launches of one lane run one after the other and share their scratch. */
static gantry_status make_scratch(gy_cuda *h, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->lanes && status == GANTRY_OK; i++) {
        gy_cuda_lane *lane = &h->lane[i];
        if (!lane->scratch_bytes)
            continue;
        uint32_t device = h->job->schedule->lanes.at[i].device;
        if (h->device[device].gpu) {
            status = gy_cuda_allocate(h, &lane->scratch, device, lane->scratch_bytes, "scratch of kernels", err);
        } else {
            void *block = NULL;
            status = gy_cuda_pinned(h, &block, lane->scratch_bytes, err);
            lane->scratch = (CUdeviceptr)(uintptr_t)block;
        }
    }
    return status;
}

/* Stages are on the NUMA node that is near to the GPU of the lane. */
static gantry_status make_stages(gy_cuda *h, gantry_error *err)
{
    const gantry_machine *m = h->job->schedule->machine;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < h->lanes && status == GANTRY_OK; i++) {
        gy_cuda_lane *lane = &h->lane[i];
        if (lane->stage_bytes) {
            int node = m->memory[m->device[lane->queue.device].memory].numa;
            status = pinned_near(h, (void **)&lane->stage, lane->stage_bytes, node, err);
        }
    }
    return status;
}

gantry_status gy_cuda_memory_make(gy_cuda *h, gantry_error *err)
{
    gantry_status status = make_slabs(h, err);
    status = status ? status : make_words(h, err);
    status = status ? status : make_scratch(h, err);
    return status ? status : make_stages(h, err);
}

static void free_at(gy_cuda *h, CUdeviceptr at, uint32_t device)
{
    if (at && gy_cuda_use(h, device, NULL) == GANTRY_OK)
        h->d.cuMemFree(at);
}

static void free_pinned(gy_cuda *h, void *at)
{
    if (at && gy_cuda_use(h, h->first_gpu, NULL) == GANTRY_OK)
        h->d.cuMemFreeHost(at);
}

void gy_cuda_memory_free(gy_cuda *h)
{
    for (uint32_t i = 0; i < h->memories && !h->borrowed; i++) {
        free_at(h, h->memory[i].base, h->memory[i].device);
        free_pinned(h, h->memory[i].host);
    }
    if (!h->borrowed)
        free_pinned(h, h->staging);
    for (uint32_t i = 0; i < h->devices; i++)
        free_at(h, h->device[i].status, i);
    free_pinned(h, h->host_status);
    free_pinned(h, h->chunk);
    for (uint32_t i = 0; i < h->lanes; i++) {
        uint32_t device = h->lane[i].scratch ? h->job->schedule->lanes.at[i].device : h->first_gpu;
        if (h->device[device].gpu)
            free_at(h, h->lane[i].scratch, device);
        else
            free_pinned(h, (void *)(uintptr_t)h->lane[i].scratch);
        free_pinned(h, h->lane[i].stage);
    }
}

/* ---- where things are ---- */

static gy_location array_location(gy_location place, const gy_cuda_array *array, char *at)
{
    place.host = gy_array_mirrored(array) ? array->mirror : at;
    place.pinned = array->pinned || array->mirror;
    return place;
}

gy_location gy_cuda_location(const gy_cuda *h, const gy_use *use, uint32_t turn)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_instance *i = &s->instances.at[use->instance];
    uint64_t offset = gy_instance_address(s, i, turn) + gy_instance_offset(s, i, use->first);
    gy_location place = { .device = GY_NONE, .pinned = true };
    switch ((gy_space)i->space) {
    case GY_SPACE_SLAB:
        place.device = h->memory[i->memory].device;
        place.at = h->memory[i->memory].base;
        place.host = h->memory[i->memory].host;
        break;
    case GY_SPACE_STAGING:
        place.host = h->staging;
        break;
    case GY_SPACE_INPUT: /* in these two a value is a buffer; nothing writes through the address of an input */
        place.device = h->memory[i->memory].device;
        place = array_location(place, &h->turn[turn].input[i->value],
                               (char *)(uintptr_t)h->job->input[gy_job_index(h->job, turn, i->value)]);
        break;
    case GY_SPACE_OUTPUT:
        place.device = h->memory[i->memory].device;
        place = array_location(place, &h->turn[turn].output[i->value],
                               h->job->output[gy_job_index(h->job, turn, i->value)]);
        break;
    }
    if (place.device != GY_NONE && i->role == GY_ROLE_EXTERNAL) {
        place.at = (CUdeviceptr)(uintptr_t)place.host;
        place.host = NULL;
    }
    return gy_location_at(place, offset);
}

/* ---- peers ---- */

static bool enable(gy_cuda *h, uint32_t from, uint32_t to)
{
    return gy_cuda_use(h, from, NULL) == GANTRY_OK &&
           gy_driver_reach(&h->d, h->device[from].id, h->device[to].id, h->device[to].context);
}

/* Of all devices that are one of the two GPUs. */
static void note_peers(gy_cuda *h, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < h->devices; i++)
        for (uint32_t k = 0; k < h->devices; k++)
            if (gy_cuda_same_gpu(h, i, a) && gy_cuda_same_gpu(h, k, b))
                h->peer[i * h->devices + k] = h->peer[k * h->devices + i] = 1;
}

/* Access stays enabled: another run, or the application, may count on it by now. A pair that refuses it is no error,
 * its copies are staged. */
bool gy_cuda_peers_enable(gy_cuda *h, uint32_t a, uint32_t b)
{
    if (!gy_cuda_reaches(h, a, b) && enable(h, a, b) && enable(h, b, a))
        note_peers(h, a, b);
    return gy_cuda_reaches(h, a, b);
}

/* True if any GPU of the op may read and write the memory of any other: a GPU may combine for others, send on what it
 * got, or tell others that it has come. */
static bool meet_all(const gy_op *op)
{
    bool counters = op->algorithm == GY_ALGORITHM_COUNTERS || op->algorithm == GY_ALGORITHM_NCCL;
    return op->kind == GY_OP_COLLECTIVE && (op->reduce || op->collective == GANTRY_BROADCAST || counters);
}

static void enable_pairs_of(gy_cuda *h, const gy_op *op)
{
    const gantry_schedule *s = h->job->schedule;
    uint32_t reads = op->kind == GY_OP_COLLECTIVE ? op->ins : op->uses / 2;
    for (uint32_t r = 0; r < (meet_all(op) ? op->uses : reads); r++) {
        for (uint32_t w = meet_all(op) ? r + 1 : reads; w < op->uses; w++) {
            gy_location from = gy_cuda_location(h, &s->use.at[op->use + r], 0);
            gy_location to = gy_cuda_location(h, &s->use.at[op->use + w], 0);
            if (from.device != GY_NONE && to.device != GY_NONE)
                gy_cuda_peers_enable(h, from.device, to.device);
        }
    }
}

gantry_status gy_cuda_peers_make(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    h->peer = gy_arena_calloc(&h->arena, (size_t)h->devices * h->devices, 1);
    if (!h->peer)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (gy_cuda_here(h, (uint32_t)i) && (gy_op_is_copy(op) || op->kind == GY_OP_COLLECTIVE))
            enable_pairs_of(h, op);
    }
    return GANTRY_OK;
}
