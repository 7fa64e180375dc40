/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The total order. Expected starts come from one pass over the draft in which devices compute one op at a time,
 * uploads of inputs wait for their link, and other copies for nobody. By expected start a copy is queued when it can
 * begin, not when its reader is placed; the draft's own order breaks ties, so both orders agree with all dependencies.
 */
#include "scheduler/order/order.h"

#include "base/error.h"
#include "base/sort.h"
#include "scheduler/order/busy.h"

typedef struct order {
    gy_plan *p;
    const gy_arrangement *how;
    size_t count;
    gy_ticks *start;    /* per draft */
    uint32_t *position; /* per draft; in a batch that of its last op, as what waits for one waits for all */
    uint32_t *instance; /* draft's number of an instance -> the schedule's, GY_NONE until it is used */
} order;

/* Edges are in the order of their `to`. */
static gantry_status expect_starts(order *o, gantry_error *err)
{
    const gy_plan *p = o->p;
    size_t edge = 0;
    gy_busy b = { 0 };
    gantry_status status = gy_busy_make(&b, p->machine, err);
    for (size_t i = 0; i < o->count && !status; i++) {
        gy_ticks ready = 0;
        for (; edge < p->draft.edges.count && p->draft.edges.at[edge].to == i; edge++) {
            uint32_t from = p->draft.edges.at[edge].from;
            gy_ticks end = o->start[from] + p->draft.op.at[from].op.duration;
            ready = end > ready ? end : ready;
        }
        gy_ticks begin = gy_busy_begin(&b, p, &p->draft.op.at[i], ready);
        o->start[i] = begin < GY_TICKS_MAX ? begin : GY_TICKS_MAX;
    }
    gy_busy_free(&b);
    return status;
}

/* Instances are numbered by their first use; those without one are left out. */
static void write_instances(order *o)
{
    gy_plan *p = o->p;
    gantry_schedule *s = p->schedule;
    for (size_t i = 0; i < p->draft.instance.count; i++)
        o->instance[i] = GY_NONE;
    for (size_t i = 0; i < o->count; i++) {
        const gy_op *op = &p->draft.op.at[p->sequence.draft_of[i]].op;
        for (uint32_t k = 0; k < op->uses; k++) {
            uint32_t instance = p->draft.use.at[op->use + k].instance;
            if (o->instance[instance] != GY_NONE)
                continue;
            o->instance[instance] = (uint32_t)s->instances.count;
            s->instances.at[s->instances.count++] = p->draft.instance.at[instance];
        }
    }
}

static void write_uses(order *o)
{
    gy_plan *p = o->p;
    gantry_schedule *s = p->schedule;
    for (size_t i = 0; i < o->count; i++) {
        const gy_op *op = &p->draft.op.at[p->sequence.draft_of[i]].op;
        for (uint32_t k = 0; k < op->uses; k++) {
            gy_use u = p->draft.use.at[op->use + k];
            u.instance = o->instance[u.instance];
            s->use.at[s->use.count++] = u;
        }
    }
}

static void write_ops(order *o)
{
    gy_plan *p = o->p;
    gantry_schedule *s = p->schedule;
    uint32_t use = 0;
    for (size_t i = 0; i < o->count; i++) {
        gy_op op = p->draft.op.at[p->sequence.draft_of[i]].op;
        op.use = use;
        use += op.uses;
        s->ops.at[s->ops.count++] = op;
    }
}

/* Of the executions of a task, the one that has the first place is the task's own. */
static gantry_status own_before_repeats(order *o, gantry_error *err)
{
    const gy_plan *p = o->p;
    gy_map first = { 0 };
    bool done = true;
    for (uint32_t i = 0; i < o->count && done && p->placed.replica.count; i++) {
        gy_op *op = &p->schedule->ops.at[i];
        uint64_t at, key = (uint64_t)op->node << 32 | op->iteration;
        if (op->node == GY_NONE)
            continue;
        op->repeat = gy_map_get(&first, key, &at);
        done = op->repeat || gy_map_put(&first, key, i);
    }
    gy_map_free(&first);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* One array after the other, so that the draft's can go when the schedule's is there. */
static gantry_status write_draft(order *o, gantry_error *err)
{
    gy_plan *p = o->p;
    gantry_schedule *s = p->schedule;
    if (!gy_vec_reserve(&s->instances, p->draft.instance.count))
        return gy_fail_nomem(err);
    write_instances(o);
    if (o->how->last)
        gy_vec_free(&p->draft.instance);
    if (!gy_vec_reserve(&s->use, p->draft.use.count))
        return gy_fail_nomem(err);
    write_uses(o);
    if (o->how->last)
        gy_vec_free(&p->draft.use);
    if (!gy_vec_reserve(&s->ops, o->count))
        return gy_fail_nomem(err);
    write_ops(o);
    return own_before_repeats(o, err);
}

/* The edges into the op, or into the whole batch that it begins; none into one that joins a batch. `first`: of the
 * edges into each op of the draft. */
static void add_needs(order *o, uint32_t position, const size_t *first)
{
    gy_plan *p = o->p;
    const gy_op *op = &p->schedule->ops.at[position];
    uint32_t last = op->joined ? position : position + (op->batch ? op->batch : 1);
    for (uint32_t i = position; i < last; i++) {
        uint32_t draft = p->sequence.draft_of[i];
        for (size_t e = first[draft]; e < first[draft + 1]; e++)
            p->sequence.need.at[p->sequence.need.count++] =
                (gy_edge){ o->position[p->draft.edges.at[e].from], position, p->draft.edges.at[e].reason };
    }
}

/* Edges between positions, grouped by `to`; of several between two ops the one with the first reason stays. */
static gantry_status write_needs(order *o, gantry_error *err)
{
    gy_plan *p = o->p;
    size_t *first = gy_calloc(o->count + 1, sizeof *first); /* of the edges into each draft */
    if (!first)
        return gy_fail_nomem(err);
    for (size_t e = 0; e < p->draft.edges.count; e++)
        first[p->draft.edges.at[e].to + 1]++;
    for (size_t i = 0; i < o->count; i++)
        first[i + 1] += first[i];
    p->sequence.need.count = 0;
    gantry_status status = gy_vec_reserve(&p->sequence.need, p->draft.edges.count) ? GANTRY_OK : gy_fail_nomem(err);
    for (uint32_t i = 0; i < o->count && !status; i++) {
        size_t begin = p->sequence.need.count, kept = begin;
        add_needs(o, i, first);
        if (p->sequence.need.count > begin &&
            !gy_edges_sort(p->sequence.need.at + begin, p->sequence.need.count - begin, true))
            status = gy_fail_nomem(err);
        for (size_t e = begin; e < p->sequence.need.count; e++)
            if (e == begin || p->sequence.need.at[e].from != p->sequence.need.at[kept - 1].from)
                p->sequence.need.at[kept++] = p->sequence.need.at[e];
        p->sequence.need.count = kept;
        p->sequence.need_first[i] = begin;
        p->sequence.need_first[i + 1] = kept;
    }
    gy_free(first);
    if (o->how->last)
        gy_vec_free(&p->draft.edges);
    return status;
}

static gantry_status fill(order *o, gantry_error *err)
{
    gy_plan *p = o->p;
    gantry_status status = expect_starts(o, err);
    for (uint32_t i = 0; i < o->count; i++)
        p->sequence.draft_of[i] = i;
    if (o->how->early && !status && !gy_sort_by_key(p->sequence.draft_of, o->start, o->count))
        status = gy_fail_nomem(err);
    if (o->how->last && !status)
        status = gy_plan_batch(p, o->start, err);
    if (o->how->last && !status)
        status = gy_plan_batch_teams(p, o->how->early, o->start, err);
    for (uint32_t i = 0, last = 0; i < o->count; i++) {
        const gy_op *op = &p->draft.op.at[p->sequence.draft_of[i]].op;
        last = op->batch ? i + op->batch - 1 : op->joined ? last : i;
        o->position[p->sequence.draft_of[i]] = last;
        p->sequence.expect[i] = o->start[p->sequence.draft_of[i]];
    }
    if (!status)
        status = write_draft(o, err);
    return status ? status : write_needs(o, err);
}

gantry_status gy_plan_order(gy_plan *p, const gy_arrangement *how, gantry_error *err)
{
    gantry_schedule *s = p->schedule;
    order o = { .p = p, .how = how, .count = p->draft.op.count };
    s->ops.count = s->use.count = s->instances.count = 0;
    if (!p->sequence.draft_of) {
        gy_free(p->sequence.need_first);
        p->sequence.draft_of = gy_calloc(o.count + 1, sizeof *p->sequence.draft_of);
        p->sequence.expect = gy_calloc(o.count + 1, sizeof *p->sequence.expect);
        p->sequence.need_first = gy_calloc(o.count + 2, sizeof *p->sequence.need_first);
    }
    o.start = gy_calloc(o.count + 1, sizeof *o.start);
    o.position = gy_calloc(o.count + 1, sizeof *o.position);
    o.instance = gy_calloc(p->draft.instance.count + 1, sizeof *o.instance);
    gantry_status status = GANTRY_OK;
    if (!p->sequence.draft_of || !p->sequence.expect || !p->sequence.need_first || !o.start || !o.position ||
        !o.instance)
        status = gy_fail_nomem(err);
    else
        status = fill(&o, err);
    gy_free(o.start);
    gy_free(o.position);
    gy_free(o.instance);
    return status;
}
