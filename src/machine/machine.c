/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a machine, looking things up, and the plain part of the public interface. */
#include "machine/machine.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "machine/build.h"
#include "machine/gpus.h"
#include <string.h>

gantry_machine *gy_machine_new(const char *name, gy_machine_size size)
{
    gantry_machine *m = gy_calloc(1, sizeof *m);
    if (!m)
        return NULL;
    atomic_init(&m->references, 1);
    m->contention = true;
    m->memories = size.memories;
    m->devices = size.devices;
    m->resources = size.resources;
    m->name = gy_arena_strdup(&m->arena, name);
    m->memory = gy_arena_calloc(&m->arena, size.memories, sizeof *m->memory);
    m->device = gy_arena_calloc(&m->arena, size.devices, sizeof *m->device);
    m->resource = gy_arena_calloc(&m->arena, size.resources, sizeof *m->resource);
    m->route = gy_arena_calloc(&m->arena, (size_t)size.memories * size.memories, sizeof *m->route);
    if (!m->name || !m->memory || !m->device || !m->resource || !m->route) {
        gantry_machine_free(m);
        return NULL;
    }
    for (uint32_t i = 0; i < size.memories; i++) /* looking an id up works from the start */
        m->memory[i].id = "";
    for (uint32_t i = 0; i < size.devices; i++)
        m->device[i].id = m->device[i].kind = "";
    for (uint32_t i = 0; i < size.resources; i++)
        m->resource[i].id = "";
    for (uint32_t from = 0; from < size.memories; from++)
        for (uint32_t to = 0; to < size.memories; to++)
            m->route[(size_t)from * size.memories + to] = (gy_route){ .from = from, .to = to, .via = GY_MACHINE_NONE };
    return m;
}

const char *gy_machine_text(gantry_machine *m, const char *text)
{
    return gy_arena_strdup(&m->arena, text);
}

static bool copy_device(gantry_machine *m, gy_device *to, const gy_device *from)
{
    *to = *from;
    to->id = gy_machine_text(m, from->id);
    to->kind = gy_machine_text(m, from->kind);
    return to->id && to->kind && gy_machine_copy_workers(m, &to->workers);
}

/* The model, which belongs to no part. */
static void copy_model(gantry_machine *m, const gantry_machine *from)
{
    m->contention = from->contention;
    m->workers = from->workers;
    m->launch = from->launch;
    m->issue = from->issue;
    m->submit = from->submit;
    m->start = from->start;
    m->another = from->another;
    m->edge = from->edge;
    m->gate = from->gate;
    m->when = from->when;
    m->left_out = from->left_out;
    m->network = from->network;
}

bool gy_machine_copy_parts(gantry_machine *m, const gantry_machine *from, const gy_machine_kept *kept)
{
    bool ok = true;
    for (uint32_t i = 0; i < from->memories && ok; i++) {
        uint32_t to = kept ? kept->memory[i] : i;
        if (to == GY_MACHINE_NONE)
            continue;
        m->memory[to] = from->memory[i];
        ok = (m->memory[to].id = gy_machine_text(m, from->memory[i].id)) != NULL;
    }
    for (uint32_t i = 0, n = 0; i < from->devices && ok; i++)
        if (!kept || kept->device[i]) {
            gy_device *d = &m->device[n++];
            ok = copy_device(m, d, &from->device[i]);
            d->memory = kept ? kept->memory[d->memory] : d->memory;
            d->ordinal = kept ? gy_device_ordinal(from, i) : d->ordinal;
        }
    for (uint32_t i = 0; i < from->resources && ok; i++) {
        uint32_t to = kept ? kept->resource[i] : i;
        if (to == GY_MACHINE_NONE)
            continue;
        m->resource[to] = from->resource[i];
        ok = (m->resource[to].id = gy_machine_text(m, from->resource[i].id)) != NULL;
    }
    copy_model(m, from);
    return ok;
}

bool gy_machine_note(gantry_machine *m, const char *note)
{
    const char **grown = note ? gy_arena_calloc(&m->arena, (size_t)m->notes + 1, sizeof *grown) : NULL;
    if (!grown)
        return false;
    if (m->notes)
        memcpy(grown, m->note, m->notes * sizeof *grown);
    grown[m->notes++] = note;
    m->note = grown;
    return true;
}

gantry_machine *gy_machine_ref(const gantry_machine *m)
{
    /* The count is the one thing that changes in a machine; everybody else sees it as constant. */
    gantry_machine *owned = (gantry_machine *)(uintptr_t)m;
    if (owned)
        atomic_fetch_add_explicit(&owned->references, 1, memory_order_relaxed);
    return owned;
}

void gantry_machine_free(gantry_machine *machine)
{
    if (!machine || atomic_fetch_sub_explicit(&machine->references, 1, memory_order_acq_rel) != 1)
        return;
    gy_arena_free(&machine->arena);
    gy_free(machine);
}

/* ---- looking up ---- */

uint32_t gy_machine_find_memory(const gantry_machine *m, const char *id)
{
    for (uint32_t i = 0; i < m->memories; i++)
        if (!strcmp(m->memory[i].id, id))
            return i;
    return GY_MACHINE_NONE;
}

uint32_t gy_machine_find_device(const gantry_machine *m, const char *id)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (!strcmp(m->device[i].id, id))
            return i;
    return GY_MACHINE_NONE;
}

uint32_t gy_machine_ranks(const gantry_machine *m)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < m->memories; i++)
        last = m->memory[i].rank > last ? m->memory[i].rank : last;
    return last + 1;
}

uint32_t gy_machine_workers(const gantry_machine *m)
{
    uint32_t n = 0;
    while (n < m->devices && !m->device[n].host_only)
        n++;
    return n;
}

double gy_device_gflops(const gy_device *d, gantry_dtype dtype)
{
    if ((unsigned)dtype >= GANTRY_DTYPE_COUNT)
        return 0;
    if (d->gflops[dtype] > 0)
        return d->gflops[dtype];
    if (dtype == GANTRY_F8E4M3 && d->gflops[GANTRY_BF16] > 0)
        return d->gflops[GANTRY_BF16];
    return dtype == GANTRY_F64 ? d->gflops[GANTRY_F32] / 2 : d->gflops[GANTRY_F32];
}

/* ---- public ---- */

const char *gantry_machine_name(const gantry_machine *machine)
{
    return machine ? machine->name : "";
}
size_t gantry_machine_device_count(const gantry_machine *machine)
{
    return machine ? machine->devices : 0;
}
size_t gantry_machine_worker_count(const gantry_machine *machine)
{
    return machine ? gy_machine_workers(machine) : 0;
}

size_t gantry_machine_rank_count(const gantry_machine *machine)
{
    return machine ? gy_machine_ranks(machine) : 0;
}

size_t gantry_machine_memory_count(const gantry_machine *machine)
{
    return machine ? machine->memories : 0;
}

static gantry_status check_query(const gantry_machine *m, size_t index, size_t count, const char *what,
                                 gantry_error *err)
{
    if (index >= count)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no %s %zu: machine \"%s\" has %zu", what, index, m->name, count);
    return GANTRY_OK;
}

gantry_status gantry_machine_device(const gantry_machine *machine, size_t device, gantry_device_info *info,
                                    gantry_error *err)
{
    GY_NEED(machine, err);
    GY_TRY(gy_struct_check(info, sizeof *info, "gantry_device_info", err));
    GY_TRY(check_query(machine, device, gantry_machine_device_count(machine), "device", err));
    const gy_device *d = &machine->device[device];
    gantry_device_info full = { sizeof full,
                                d->id,
                                d->kind,
                                d->gpu,
                                (int32_t)d->memory,
                                (int32_t)d->lanes,
                                (int32_t)d->copy_engines,
                                d->bandwidth_gbs,
                                gy_ticks_to_us(d->launch),
                                gy_ticks_to_us(d->signal),
                                (int32_t)gy_device_rank(machine, (uint32_t)device),
                                (int32_t)d->threads };
    gy_struct_write(info, &full, sizeof full);
    return GANTRY_OK;
}

gantry_status gantry_machine_memory(const gantry_machine *machine, size_t memory, gantry_memory_info *info,
                                    gantry_error *err)
{
    GY_NEED(machine, err);
    GY_TRY(gy_struct_check(info, sizeof *info, "gantry_memory_info", err));
    GY_TRY(check_query(machine, memory, gantry_machine_memory_count(machine), "memory", err));
    const gy_memory *y = &machine->memory[memory];
    gantry_memory_info full = { sizeof full, y->id, y->capacity, y->reserved, y->rank };
    gy_struct_write(info, &full, sizeof full);
    return GANTRY_OK;
}

double gantry_machine_copy_us(const gantry_machine *machine, size_t from, size_t to, uint64_t bytes)
{
    if (!machine || from >= machine->memories || to >= machine->memories)
        return -1;
    const gy_route *r = gy_machine_route(machine, (uint32_t)from, (uint32_t)to);
    if (r->kind == GY_ROUTE_NONE)
        return -1;
    return gy_ticks_to_us(gy_route_time(machine, r, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes));
}
