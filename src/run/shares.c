/* SPDX-License-Identifier: Apache-2.0 */
#include "run/shares.h"

#include "base/memory.h"
#include <stdlib.h>

#define SLOWER 0.9   /* of its rate: an op is held up by others */
#define LEAST  0.001 /* of a device */

enum { STEPS = 24 };

/* ---- one stretch of time of a device ---- */

typedef GY_VEC(uint32_t) active_ops;

typedef struct fit {
    const gy_share_op *op;
    active_ops active;
    double *share, *gain, *weight; /* per group; of this step */
} fit;

static double rate_of(const gy_share_op *o)
{
    double us = (double)(o->time.end - o->time.start) / 1e3;
    return o->alone_us > 0 && o->alone_us < us ? o->alone_us / us : 1;
}

static double share_of(const fit *f, const gy_share_op *o)
{
    return o->group == GY_NONE ? o->fixed : f->share[o->group];
}

static void count_stretch(fit *f, double ns)
{
    double used = 0;
    bool full = false;
    for (size_t i = 0; i < f->active.count; i++) {
        const gy_share_op *o = &f->op[f->active.at[i]];
        used += share_of(f, o) * rate_of(o);
        full = full || rate_of(o) < SLOWER;
    }
    if (!full && used <= 1)
        return;
    for (size_t i = 0; i < f->active.count; i++) {
        const gy_share_op *o = &f->op[f->active.at[i]];
        if (o->group == GY_NONE)
            continue;
        f->gain[o->group] += ns * rate_of(o) / used;
        f->weight[o->group] += ns * rate_of(o);
    }
}

/* ---- all of them ---- */

static int by_device_and_start(const void *a, const void *b)
{
    const gy_share_op *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->time.start > y->time.start) - (x->time.start < y->time.start);
}

/* The first end among those that run, which are left by it; `until` where none ends before. */
static int64_t next_end(const fit *f, int64_t until)
{
    for (size_t i = 0; i < f->active.count; i++)
        if (f->op[f->active.at[i]].time.end < until)
            until = f->op[f->active.at[i]].time.end;
    return until;
}

static void leave(fit *f, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->active.count; i++)
        if (f->op[f->active.at[i]].time.end > now)
            f->active.at[kept++] = f->active.at[i];
    f->active.count = kept;
}

/* Goes on from `now` to `until`, stretch after stretch. */
static void pass(fit *f, int64_t now, int64_t until)
{
    while (f->active.count && now < until) {
        int64_t end = next_end(f, until);
        count_stretch(f, (double)(end - now));
        leave(f, end);
        now = end;
    }
}

/* One step over all ops, device after device. */
static bool step(fit *f, size_t ops)
{
    for (size_t i = 0; i < ops; i++) {
        bool last = i + 1 == ops || f->op[i + 1].device != f->op[i].device;
        if (!gy_vec_push(&f->active, (uint32_t)i))
            return false;
        pass(f, f->op[i].time.start, last ? INT64_MAX : f->op[i + 1].time.start);
    }
    return true;
}

static void improve(fit *f, bool *found, uint32_t groups)
{
    for (uint32_t i = 0; i < groups; i++) {
        if (!(f->weight[i] > 0))
            continue;
        double better = f->share[i] * f->gain[i] / f->weight[i];
        f->share[i] = better > 1 ? 1 : better < LEAST ? LEAST : better;
        f->gain[i] = f->weight[i] = 0;
        found[i] = true;
    }
}

bool gy_shares_fit(gy_share_op *op, size_t ops, double *share, bool *found, uint32_t groups)
{
    fit f = { .op = op, .share = share };
    f.gain = gy_calloc(groups + 1, sizeof *f.gain);
    f.weight = gy_calloc(groups + 1, sizeof *f.weight);
    bool ok = f.gain && f.weight;
    if (ops)
        qsort(op, ops, sizeof *op, by_device_and_start);
    for (int i = 0; i < STEPS && ok; i++) {
        ok = step(&f, ops);
        improve(&f, found, groups);
    }
    gy_vec_free(&f.active);
    gy_free(f.gain);
    gy_free(f.weight);
    return ok;
}
