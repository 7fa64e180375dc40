/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/memory.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/limit.h"
#include <sys/mman.h>

static char *aligned(void *block)
{
    uintptr_t at = (uintptr_t)block;
    return (char *)block + (GY_HOST_ALIGN - at % GY_HOST_ALIGN) % GY_HOST_ALIGN;
}

static gantry_status fail_slab(const gantry_schedule *s, uint32_t memory, gantry_error *err)
{
    char size[32];
    return gy_fail(err, GANTRY_E_NOMEM, NULL,
                   "cannot allocate %s for the memory \"%s\" of the machine; take fewer devices, or more parts",
                   gy_bytes_text(size, sizeof size, s->slab.at[memory]), s->machine->memory[memory].id);
}

static bool is_here(const gy_job *job, uint32_t memory)
{
    return !job->network || job->schedule->machine->memory[memory].rank == job->network->rank;
}

static uint64_t slab_of(const gy_job *job, uint32_t memory)
{
    return job->room ? job->room[memory] : job->schedule->slab.at[memory];
}

static uint64_t staging_of(const gy_job *job)
{
    return job->room ? job->room[job->schedule->slab.count] : job->schedule->staging;
}

/* All memories of virtual devices are one memory in truth, and a system that promises more than it has ends the program
 * when the rows are touched. */
static gantry_status look_at_sum(const gy_job *job, gantry_error *err)
{
    const gantry_schedule *s = job->schedule;
    uint64_t sum = staging_of(job), limit = gy_memory_limit(), used = 0;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < s->slab.count; i++) {
        uint64_t bytes = is_here(job, i) ? slab_of(job, i) : 0;
        sum = bytes < UINT64_MAX - sum ? sum + bytes : UINT64_MAX;
        used += bytes > 0;
        largest = bytes > (is_here(job, largest) ? slab_of(job, largest) : 0) ? i : largest;
    }
    if (sum <= limit)
        return GANTRY_OK;
    char all[32], has[32], most[32];
    return gy_fail(
        err, GANTRY_E_NOMEM, NULL,
        "the memories of the virtual devices take %s together (\"%s\" %s), and this process may have %s; limit "
        "each, such as --max-memory %s=%lluMiB, or take fewer devices, or more parts",
        gy_bytes_text(all, sizeof all, sum), s->machine->memory[largest].id,
        gy_bytes_text(most, sizeof most, slab_of(job, largest)), gy_bytes_text(has, sizeof has, limit),
        s->machine->memory[largest].id, (unsigned long long)(limit / (used + 1) >> 20));
}

static void *map_pages(uint64_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static bool make_slab(gy_host_memory *m, uint32_t i, uint64_t bytes)
{
    m->bytes_[i] = bytes + GY_HOST_ALIGN;
    m->block_[i] = m->guarded ? map_pages(m->bytes_[i]) : gy_alloc(m->bytes_[i]);
    m->slab[i] = m->block_[i] ? aligned(m->block_[i]) : NULL;
    return m->block_[i] != NULL;
}

/* Also where nothing lives but instances without a row: kernels are given an address for these, too. */
static gantry_status make_slabs(gy_host_memory *m, const gy_job *job, gantry_error *err)
{
    const gantry_schedule *s = job->schedule;
    for (uint32_t i = 0; i < m->count && i < s->slab.count; i++)
        if (is_here(job, i) && !make_slab(m, i, slab_of(job, i)))
            return fail_slab(s, i, err);
    m->staging_block_ = gy_alloc(staging_of(job) + GY_HOST_ALIGN);
    if (!m->staging_block_)
        return gy_fail_nomem(err);
    m->staging = aligned(m->staging_block_);
    return GANTRY_OK;
}

gantry_status gy_host_memory_make(gy_host_memory *m, const gy_job *job, bool guarded, gantry_error *err)
{
    *m = (gy_host_memory){ .count = job->schedule->machine->memories, .guarded = guarded };
    m->slab = gy_calloc(m->count, sizeof *m->slab);
    m->block_ = gy_calloc(m->count, sizeof *m->block_);
    m->bytes_ = gy_calloc(m->count, sizeof *m->bytes_);
    bool room = m->slab && m->block_ && m->bytes_;
    gantry_status status = room ? look_at_sum(job, err) : gy_fail_nomem(err);
    status = status ? status : make_slabs(m, job, err);
    if (status)
        gy_host_memory_free(m);
    return status;
}

void gy_host_memory_free(gy_host_memory *m)
{
    if (m->borrowed) {
        *m = (gy_host_memory){ 0 };
        return;
    }
    for (uint32_t i = 0; m->block_ && i < m->count; i++)
        if (!m->guarded)
            gy_free(m->block_[i]);
        else if (m->block_[i])
            munmap(m->block_[i], m->bytes_[i]);
    gy_free(m->block_);
    gy_free(m->bytes_);
    gy_free(m->slab);
    gy_free(m->staging_block_);
    *m = (gy_host_memory){ 0 };
}

bool gy_host_memory_allow(const gy_host_memory *m, bool allow)
{
    int protection = allow ? PROT_READ | PROT_WRITE : PROT_NONE;
    bool done = true;
    for (uint32_t i = 0; i < m->count; i++)
        done = (!m->block_[i] || mprotect(m->block_[i], m->bytes_[i], protection) == 0) && done;
    return done;
}

uint32_t gy_host_memory_find(const gy_host_memory *m, const void *at)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uintptr_t from = (uintptr_t)m->block_[i], address = (uintptr_t)at;
        if (from && address >= from && address - from < m->bytes_[i])
            return i;
    }
    return GY_MACHINE_NONE;
}

char *gy_host_instance_at(const gy_host_memory *m, const gy_job *job, const gy_instance *instance, uint32_t turn)
{
    /* In these spaces a value is a buffer. Nothing writes through the address of an input. */
    char *base = NULL;
    switch ((gy_space)instance->space) {
    case GY_SPACE_SLAB:
        base = m->slab[instance->memory];
        break;
    case GY_SPACE_STAGING:
        base = m->staging;
        break;
    case GY_SPACE_INPUT:
        base = (char *)(uintptr_t)job->input[gy_job_index(job, turn, instance->value)];
        break;
    case GY_SPACE_OUTPUT:
        base = job->output[gy_job_index(job, turn, instance->value)];
        break;
    }
    return base ? base + gy_instance_address(job->schedule, instance, turn) : NULL;
}
