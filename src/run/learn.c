/* SPDX-License-Identifier: Apache-2.0 */
#include "run/learn.h"

#include "base/error.h"
#include "base/map.h"
#include "machine/recall.h"
#include "run/shares.h"

#define LEAST_US 0.001

/* Groups: ops of one kernel with the same arguments, on devices of one kind. */
typedef struct learning {
    const gantry_run *run;
    const gantry_machine *known;
    gy_cases cases;                        /* the groups */
    GY_VEC(const gy_kernel_table *) table; /* per group; NULL: nothing is known of it */
    GY_VEC(double) share;
    GY_VEC(double) added; /* us that one more adds to a batch; 0: not known */
    GY_VEC(gy_share_op) op;
} learning;

static double share_of(const gy_op *op)
{
    return (double)(GY_WHOLE_DEVICE - op->spare) / GY_WHOLE_DEVICE;
}

/* The group of a kernel's op, GY_NO_NAME without memory. */
static uint32_t group_of(learning *l, const gantry_schedule *s, const gy_op *op)
{
    bool isnew;
    uint32_t group = gy_cases_look(&l->cases, s, op, &isnew);
    if (group == GY_NO_NAME || !isnew)
        return group;
    const gy_kernel_table *t = gy_cases_find(&l->cases, l->known);
    return gy_vec_push(&l->table, t) && gy_vec_push(&l->share, share_of(op)) && gy_vec_push(&l->added, 0) ? group
                                                                                                          : GY_NO_NAME;
}

static bool begins_launches(const gantry_schedule *s, const gy_op *op)
{
    return op->batch > 1 && gy_samples_kernel(s, op, true);
}

/* A batch that was alone on its device tells what one more adds; the least of all that do counts. */
static bool add_batch(learning *l, const gantry_schedule *s, const gy_op *op, double us)
{
    uint32_t group = us > 0 ? group_of(l, s, op) : GY_NO_NAME;
    if (group == GY_NO_NAME || !l->table.at[group])
        return us <= 0 || group != GY_NO_NAME;
    double added = (us - gy_ticks_to_us(l->table.at[group]->point[0].time)) / (op->batch - 1),
           *least = &l->added.at[group];
    added = added > LEAST_US ? added : LEAST_US;
    *least = *least > 0 && *least < added ? *least : added;
    return true;
}

/* Devices of different phases are different ones: their times begin anew. */
static bool add_op(learning *l, const gantry_schedule *s, uint32_t id, uint32_t first_device, gy_op_time time)
{
    const gy_op *op = &s->ops.at[id];
    uint32_t device = gy_op_device(s, op, 0);
    gy_share_op o = { .device = first_device + device, .group = GY_NONE, .time = time, .fixed = share_of(op) };
    if (gy_op_is_copy(op) || !s->machine->device[device].gpu || time.end <= time.start)
        return true;
    if (gy_samples_kernel(s, op, false)) {
        uint32_t group = group_of(l, s, op);
        if (group == GY_NO_NAME)
            return false;
        o.group = l->table.at[group] ? group : GY_NONE;
        o.alone_us = l->table.at[group] ? gy_ticks_to_us(l->table.at[group]->point[0].time) : 0;
    }
    return gy_vec_push(&l->op, o);
}

static bool add_ops(learning *l)
{
    const gantry_schedule *s;
    const gy_samples *samples = l->run->samples;
    const gy_op_time *time = samples->last;
    const double *us = samples->start.at[samples->start.count - 1];
    for (size_t part = 0; (s = gy_samples_phase(l->run->schedule, part)); part++) {
        uint32_t first_device = (uint32_t)part * s->machine->devices;
        for (uint32_t i = 0; i < s->ops.count; i++)
            if (!add_op(l, s, i, first_device, time[i]) ||
                (begins_launches(s, &s->ops.at[i]) && !add_batch(l, s, &s->ops.at[i], us[i])))
                return false;
        time += s->ops.count;
        us += s->ops.count;
    }
    return true;
}

/* All of the device is one thousandth less: else it would be as if nothing were known. */
static uint32_t thousandths(double share)
{
    uint32_t whole = (uint32_t)(share * GY_WHOLE_DEVICE + 0.5);
    return whole < 1 ? 1 : whole < GY_WHOLE_DEVICE ? whole : GY_WHOLE_DEVICE - 1;
}

/* 0: nothing is known of it. */
static uint32_t known_share(const gy_kernel_table *t)
{
    return t->share ? gy_kernel_share(t, (double)t->point[0].bytes) : 0;
}

static bool tell(gy_measured *to, const gy_kernel_table *t, uint32_t share, double added)
{
    gy_measured_kernel k = { .name = t->kernel, .kind = t->kind, .arguments = t->arguments, .dtype = t->dtype };
    gy_measured_point p = { .work = (double)t->point[0].bytes, .share = share };
    p.time = (gy_figure){ .us = gy_ticks_to_us(t->point[0].time), .samples = 1 };
    k.by_flops = t->by_flops;
    k.partial = true;
    k.scratch = t->scratch;
    bool ok = gy_vec_push(&k.points, p);
    p.time.us = added;
    ok = ok && (added <= 0 || gy_vec_push(&k.batched, p)) && gy_vec_push(&to->kernels, k);
    if (!ok) {
        gy_vec_free(&k.points);
        gy_vec_free(&k.batched);
    }
    return ok;
}

static bool fit(gy_measured *to, learning *l)
{
    bool *found = gy_calloc(l->share.count + 1, sizeof *found);
    bool ok = found && gy_shares_fit(l->op.at, l->op.count, l->share.at, found, (uint32_t)l->share.count);
    for (size_t i = 0; i < l->share.count && ok; i++) {
        const gy_kernel_table *t = l->table.at[i];
        if (t && (found[i] || l->added.at[i] > 0))
            ok = tell(to, t, found[i] ? thousandths(l->share.at[i]) : known_share(t), l->added.at[i]);
    }
    gy_free(found);
    return ok;
}

gantry_status gy_learn_shares(gy_measured *to, const gantry_run *run, const gantry_machine *known, gantry_error *err)
{
    learning l = { .run = run, .known = known };
    bool ok = !run->samples || !run->samples->start.count || (add_ops(&l) && fit(to, &l));
    gy_cases_free(&l.cases);
    gy_vec_free(&l.table);
    gy_vec_free(&l.share);
    gy_vec_free(&l.added);
    gy_vec_free(&l.op);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- rounds ---- */

static uint64_t mark_of(const gantry_run *run, uint32_t round)
{
    const gantry_schedule *s = run->schedule;
    uint32_t number[] = { s->machine->devices, round };
    return gy_hash_bytes(number, sizeof number, s->graph->hash);
}

uint32_t gy_learn_rounds(const gantry_machine *known, const gantry_run *run)
{
    uint32_t round = 0;
    while (round < GY_LEARN_ROUNDS && gy_recall_has_mark(known, mark_of(run, round)))
        round++;
    return round;
}

bool gy_learn_mark(gantry_machine *known, const gantry_run *run)
{
    uint32_t round = gy_learn_rounds(known, run);
    return round == GY_LEARN_ROUNDS || gy_recall_mark(known, mark_of(run, round));
}
