/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/folding.h"

#include "base/error.h"
#include "scheduler/policies/partition/families.h"
#include <stdlib.h>
#include <string.h>

#define WORTH 2 /* tasks of a family, on average, from which on it is worth while to see it as one */

/* ---- families ---- */

/* By the rows that are written first: neighbours stay neighbours. */
static int by_place(const void *a, const void *b, void *context)
{
    const gy_plan *p = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const gy_access *one = gy_families_place(p, x), *other = gy_families_place(p, y);
    if (!one != !other)
        return one ? -1 : 1;
    if (one && one->buffer != other->buffer)
        return one->buffer < other->buffer ? -1 : 1;
    if (one && one->first != other->first)
        return one->first < other->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Numbers families by the places of the tasks that they are known by. */
static void number(gy_folding *f, const gy_model *m, const uint32_t *family)
{
    f->units = 0;
    for (uint32_t t = 0; t < m->tasks; t++)
        if (family[t] == t)
            f->member[f->units++] = t;
    qsort_r(f->member, f->units, sizeof *f->member, by_place, m->plan);
    for (uint32_t u = 0; u < f->units; u++)
        f->unit[f->member[u]] = u;
    for (uint32_t t = 0; t < m->tasks; t++) {
        f->unit[t] = f->unit[family[t]];
        f->first_member[f->unit[t] + 2]++; /* two up: filling moves each begin one down */
    }
    for (uint32_t u = 0; u < f->units; u++)
        f->first_member[u + 2] += f->first_member[u + 1];
    for (uint32_t t = 0; t < m->tasks; t++)
        f->member[f->first_member[f->unit[t] + 1]++] = t;
    f->units = f->units <= m->tasks / WORTH ? f->units : 0;
}

gantry_status gy_folding_make(gy_folding *f, const gy_model *m, gantry_error *err)
{
    size_t n = (size_t)m->tasks + 3;
    *f = (gy_folding){ 0 };
    if (m->bound_units || m->pool || m->like || m->devices < 2)
        return GANTRY_OK;
    uint32_t *family = gy_calloc(n, sizeof *family);
    f->unit = gy_calloc(n, sizeof *f->unit);
    f->member = gy_calloc(n, sizeof *f->member);
    f->first_member = gy_calloc(n, sizeof *f->first_member);
    f->count = gy_calloc(m->devices, sizeof *f->count);
    f->load = gy_calloc(m->devices, sizeof *f->load);
    bool done =
        family && f->count && f->load && f->unit && f->member && f->first_member && gy_families_find(m->plan, family);
    if (done)
        number(f, m, family);
    gy_free(family);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_folding_free(gy_folding *f)
{
    gy_free(f->unit);
    gy_free(f->member);
    gy_free(f->first_member);
    gy_free(f->count);
    gy_free(f->load);
    *f = (gy_folding){ 0 };
}

/* The device that most of the unit's members are on, the lowest of equals. */
static uint32_t most_common(const gy_folding *f, const gy_model *m, uint32_t unit, const uint32_t *device)
{
    uint32_t best = 0;
    memset(f->count, 0, m->devices * sizeof *f->count);
    for (size_t i = f->first_member[unit]; i < f->first_member[unit + 1]; i++)
        f->count[device[f->member[i]]]++;
    for (uint32_t d = 1; d < m->devices; d++)
        best = f->count[d] > f->count[best] ? d : best;
    return best;
}

void gy_folding_gather(const gy_folding *f, const gy_model *m, gy_candidate *c)
{
    for (uint32_t u = 0; u < f->units; u++) {
        uint32_t d = most_common(f, m, u, c->device);
        for (size_t i = f->first_member[u]; i < f->first_member[u + 1]; i++)
            c->device[f->member[i]] = d;
    }
    c->model = c->simulated = GY_TICKS_MAX;
}

/* ---- dealing ---- */

/* Time of the device with families [first, last) as well; GY_TICKS_MAX: it cannot. */
static gy_ticks load_with(const gy_folding *f, const gy_model *m, uint32_t first, uint32_t last, uint32_t d)
{
    gy_ticks load = f->load[d];
    for (size_t i = f->first_member[first]; i < f->first_member[last]; i++)
        if (!gy_model_is_team(m, f->member[i]))
            load = gy_ticks_both(load, gy_model_time(m, f->member[i], d));
    return load;
}

static void deal_lot(const gy_folding *f, const gy_model *m, uint32_t first, uint32_t last, uint32_t *device)
{
    gy_ticks least = GY_TICKS_MAX;
    uint32_t best = GY_NONE;
    for (uint32_t d = 0; d < m->devices; d++) {
        gy_ticks load = load_with(f, m, first, last, d);
        if (load < least) {
            least = load;
            best = d;
        }
    }
    if (best == GY_NONE && last - first > 1) { /* no device can run all of them */
        for (uint32_t u = first; u < last; u++)
            deal_lot(f, m, u, u + 1, device);
        return;
    }
    for (size_t i = f->first_member[first]; best != GY_NONE && i < f->first_member[last]; i++)
        device[f->member[i]] = best;
    if (best != GY_NONE)
        f->load[best] = least;
}

/* Lots are of one size, but for one. */
static uint32_t begin_of(const gy_folding *f, uint32_t lot, uint32_t lots)
{
    return (uint32_t)(((uint64_t)f->units * lot + lots - 1) / lots);
}

void gy_folding_deal(const gy_folding *f, const gy_model *m, uint32_t lots, gy_candidate *c)
{
    memset(f->load, 0, m->devices * sizeof *f->load);
    for (uint32_t i = 0; i < lots; i++)
        deal_lot(f, m, begin_of(f, i, lots), begin_of(f, i + 1, lots), c->device);
    c->model = c->simulated = GY_TICKS_MAX;
}

/* ---- devices that change places ---- */

/* false: some task cannot be where it would come to. */
static bool exchange(const gy_model *m, uint32_t *device, uint32_t a, uint32_t b)
{
    for (uint32_t t = 0; t < m->tasks; t++) {
        bool there = device[t] == a || device[t] == b;
        if (there && !gy_model_is_team(m, t) && gy_model_time(m, t, device[t] ^ a ^ b) >= GY_TICKS_MAX)
            return false;
    }
    for (uint32_t t = 0; t < m->tasks; t++)
        if (device[t] == a || device[t] == b)
            device[t] ^= a ^ b;
    return true;
}

static bool try_exchange(gy_decode *d, gy_candidate *c, uint32_t a, uint32_t b)
{
    if (!exchange(d->m, c->device, a, b))
        return false;
    memcpy(d->device, c->device, c->tasks * sizeof *d->device);
    gy_ticks makespan = gy_decode_run(d, c->order, c->model);
    if (makespan < c->model) {
        c->model = makespan;
        return true;
    }
    (void)exchange(d->m, c->device, a, b);
    return false;
}

uint64_t gy_folding_exchange(gy_decode *d, gy_candidate *c, uint64_t budget)
{
    uint64_t made = 0;
    for (bool better = true; better;) {
        better = false;
        for (uint32_t a = 0; a < d->m->devices; a++)
            for (uint32_t b = a + 1; b < d->m->devices && made < budget; b++, made++)
                better = try_exchange(d, c, a, b) || better;
        better = better && made < budget;
    }
    return made;
}
