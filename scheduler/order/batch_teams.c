/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Batches of collectives. Small collectives take little more than their latency, so several of one kind among the same
 * ranks take hardly longer as one: as gradients do, of which a backward pass makes many.
 *
 * Ops are gone through in their order. One that could be in a batch stays *open*, and what waits for it is put off;
 * the batch closes when it has its part of the bytes of all that are alike, or when one more of them comes that waits
 * for those that are open. So nothing that a batch waits for can wait for the batch. A batch is one collective of the
 * sum of bytes, by the algorithm that is best for so many, and begins when the last of it can. That delays the first,
 * so the attempt says in how many batches the bytes are divided, and simulation which number is best.
 */
#include "base/error.h"
#include "base/map.h"
#include "base/sort.h"
#include "scheduler/collective/collective.h"
#include "scheduler/order/busy.h"
#include "scheduler/order/order.h"
#include <string.h>

enum { UP_TO = 16384 }; /* ops: going through them again each time that a batch closes takes longer than it is worth */

typedef enum state { WAITS, OPEN, PLACED } state;

typedef struct class
{
    uint32_t draft, root; /* the first of it, and who is its root */
    uint32_t members;
    int64_t all, bytes;    /* of all of it, of those that are open */
    GY_VEC(uint32_t) open; /* they have come, and have no place yet */
} class;

typedef struct joiner {
    gy_plan *p;
    uint32_t count, batches; /* ops of the draft; what follows is by op, where nothing else is said */
    bool dry;                /* nothing is changed: it is asked what batches would spare */
    uint32_t *class_of;      /* GY_NONE: it is in none */
    int64_t *bytes;          /* of a collective */
    uint8_t *state;
    size_t *need; /* count + 1: the edges into op i are need[i] ... */
    gy_ticks *end;
    uint32_t *order; /* the new order; `placed` of it are there */
    uint32_t placed;
    GY_VEC(uint32_t) later; /* ops that wait for open ones, or for each other */
    GY_VEC(class) classes;
    gy_map found;
    gy_ticks spared;
    bool closed, joined; /* since they were looked at last; at all */
} joiner;

/* ---- groups ---- */

static const gy_buffer *buffer_of(const gy_plan *p, const gy_instance *in)
{
    return &p->graph->buffers.at[p->flow->value[in->value].buffer];
}

static gantry_dtype dtype_of(const gy_plan *p, const gy_draft_op *d)
{
    return buffer_of(p, &p->draft.instance.at[p->draft.use.at[d->op.use].instance])->dtype;
}

static bool group_of_rows(const gy_plan *p, const gy_op *op, gy_group *g)
{
    gy_group_span *span = gy_calloc(op->uses, sizeof *span);
    for (uint32_t i = 0; span && i < op->uses; i++) {
        const gy_use *u = &p->draft.use.at[op->use + i];
        const gy_instance *in = &p->draft.instance.at[u->instance];
        const gy_buffer *b = buffer_of(p, in);
        span[i] =
            (gy_group_span){ in->memory, u->instance, gy_buffer_offset(b, u->first), gy_buffer_offset(b, u->last) };
    }
    bool done = span && gy_group_of_rows(g, op->collective, op->reduce, span, op->ins, op->uses - op->ins);
    gy_free(span);
    return done;
}

static bool group_of_regions(const gy_plan *p, const gy_op *op, gy_group *g)
{
    gy_group_end *end = gy_calloc(op->uses, sizeof *end);
    for (uint32_t i = 0; end && i < op->uses; i++) {
        const gy_use *u = &p->draft.use.at[op->use + i];
        const gy_instance *in = &p->draft.instance.at[u->instance];
        end[i] = (gy_group_end){ in->memory, gy_buffer_span(buffer_of(p, in), u->first, u->last),
                                 p->flow->value[in->value].buffer, u->first, u->last };
    }
    bool done = end && gy_group_of_node(g, op->collective, op->reduce, end, op->ins, op->uses - op->ins);
    gy_free(end);
    return done;
}

static bool group_of(const gy_plan *p, uint32_t draft, gy_group *g)
{
    const gy_draft_op *d = &p->draft.op.at[draft];
    if (!(d->op.node == GY_NONE ? group_of_rows : group_of_regions)(p, &d->op, g))
        return false;
    gy_group_type(g, dtype_of(p, d));
    return true;
}

/* All of them as one. */
static bool group_of_all(const joiner *j, const class *c, gy_group *all)
{
    bool done = group_of(j->p, c->open.at[0], all);
    for (size_t i = 1; i < c->open.count && done; i++) {
        gy_group more;
        done = group_of(j->p, c->open.at[i], &more);
        if (done) {
            gy_group_add(all, &more);
            gy_group_free(&more);
        } else {
            gy_group_free(all);
        }
    }
    return done;
}

/* ---- classes ---- */

/* The algorithm that the node asks for; NULL: the best is taken. */
static const char *asked_of(const gy_plan *p, const gy_draft_op *d)
{
    const gy_node_extra *extra = d->op.node == GY_NONE ? NULL : gy_plan_extra(p, d->op.node);
    return extra ? extra->algorithm : NULL;
}

static bool could_join(const gy_draft_op *d)
{
    return d->op.kind == GY_OP_COLLECTIVE && d->ranks > 1 && d->op.uses && !d->op.repeat && !d->replicated &&
           d->op.provenance != GY_COST_GIVEN;
}

static bool is_same(const gy_plan *p, const class *c, const gy_draft_op *d, uint32_t root)
{
    const gy_draft_op *first = &p->draft.op.at[c->draft];
    bool asked = asked_of(p, first) || asked_of(p, d);
    return first->op.collective == d->op.collective && first->op.reduce == d->op.reduce && c->root == root &&
           dtype_of(p, first) == dtype_of(p, d) && first->ranks == d->ranks &&
           !memcmp(&p->rank_device.at[first->rank], &p->rank_device.at[d->rank],
                   d->ranks * sizeof *p->rank_device.at) &&
           !asked_of(p, first) == !asked_of(p, d) && (!asked || first->op.algorithm == d->op.algorithm);
}

static bool find_class(joiner *j, uint32_t draft, uint32_t root, uint32_t *found)
{
    const gy_draft_op *d = &j->p->draft.op.at[draft];
    uint64_t at, key = gy_hash_bytes(&j->p->rank_device.at[d->rank], d->ranks * sizeof(uint32_t), d->op.collective);
    for (; gy_map_get(&j->found, key, &at); key++) {
        *found = (uint32_t)at;
        if (is_same(j->p, &j->classes.at[at], d, root))
            return true;
    }
    *found = (uint32_t)j->classes.count;
    return gy_map_put(&j->found, key, j->classes.count) &&
           gy_vec_push(&j->classes, ((class){ .draft = draft, .root = root }));
}

/* false: out of memory. *several: some class has more than one. */
static bool classify(joiner *j, bool *several)
{
    for (uint32_t i = 0; i < j->count; i++) {
        gy_group g;
        j->class_of[i] = GY_NONE;
        if (!could_join(&j->p->draft.op.at[i]))
            continue;
        if (!group_of(j->p, i, &g))
            return false;
        bool done = find_class(j, i, g.root, &j->class_of[i]);
        j->bytes[i] = g.bytes;
        gy_group_free(&g);
        if (!done)
            return false;
        class *c = &j->classes.at[j->class_of[i]];
        c->all += j->bytes[i];
        *several = *several || ++c->members > 1;
    }
    return true;
}

/* ---- places ---- */

static void place(joiner *j, uint32_t draft)
{
    j->order[j->placed++] = draft;
    j->state[draft] = PLACED;
}

/* Each of them can be carried out by the algorithm, too. */
static bool all_can(const joiner *j, const class *c, gy_algorithm algorithm, bool *can)
{
    *can = true;
    for (size_t i = 0; i < c->open.count && *can; i++) {
        gy_group g;
        if (!group_of(j->p, c->open.at[i], &g))
            return false;
        bool done = gy_net_begin(j->p->net, &g);
        *can = done && !gy_collective_look(j->p->net, &g, algorithm).refused;
        gy_group_free(&g);
        if (!done)
            return false;
    }
    return true;
}

/* How the open ones are carried out as one, and how long that takes. */
static bool look(const joiner *j, const class *c, gy_way *way)
{
    gy_group all;
    const gy_draft_op *first = &j->p->draft.op.at[c->draft];
    if (!group_of_all(j, c, &all))
        return false;
    bool done = gy_net_begin(j->p->net, &all) && gy_collective_choose(j->p->net, &all, way);
    if (done && asked_of(j->p, first))
        *way = gy_collective_look(j->p->net, &all, first->op.algorithm);
    gy_group_free(&all);
    return done;
}

static void join(joiner *j, const class *c, const gy_way *way)
{
    for (size_t i = 0; i < c->open.count; i++) {
        gy_op *op = &j->p->draft.op.at[c->open.at[i]].op;
        op->joined = i > 0;
        op->batch = i ? 0 : (uint32_t)c->open.count;
        op->duration = i ? 0 : way->time;
        op->algorithm = (uint8_t)way->algorithm;
        op->provenance = way->provenance;
    }
    j->joined = true;
}

/* Those that are open get their places, as a batch where that takes less time than one after the other. */
static bool close_class(joiner *j, class *c)
{
    gy_ticks alone = 0;
    gy_way way = { .time = GY_TICKS_MAX };
    bool can = c->open.count > 1;
    for (size_t i = 0; i < c->open.count; i++)
        alone = gy_ticks_both(alone, j->p->draft.op.at[c->open.at[i]].op.duration);
    if (can && !look(j, c, &way))
        return false;
    can = can && !way.refused && way.time < alone;
    if (can && !all_can(j, c, way.algorithm, &can))
        return false;
    if (can) {
        j->spared = gy_ticks_both(j->spared, alone - way.time);
        if (!j->dry)
            join(j, c, &way);
    }
    for (size_t i = 0; i < c->open.count; i++)
        place(j, c->open.at[i]);
    j->closed = j->closed || c->open.count;
    c->open.count = 0;
    c->bytes = 0;
    return true;
}

/* All that they wait for has its place. */
static bool are_free(const joiner *j, const uint32_t *draft, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (size_t e = j->need[draft[i]]; e < j->need[draft[i] + 1]; e++)
            if (j->state[j->p->draft.edges.at[e].from] != PLACED)
                return false;
    return true;
}

static bool put_off(joiner *j, const uint32_t *draft, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!gy_vec_push(&j->later, draft[i]))
            return false;
    return true;
}

/* One op, or a whole batch, has come in the order. false: out of memory. */
static bool come(joiner *j, const uint32_t *draft, uint32_t count)
{
    class *c = j->class_of[*draft] == GY_NONE ? NULL : &j->classes.at[j->class_of[*draft]];
    if (!are_free(j, draft, count))
        return (!c || close_class(j, c)) && put_off(j, draft, count);
    if (!c) {
        for (uint32_t i = 0; i < count; i++)
            place(j, draft[i]);
        return true;
    }
    j->state[*draft] = OPEN;
    c->bytes += j->bytes[*draft];
    if (!gy_vec_push(&c->open, *draft))
        return false;
    return c->bytes < c->all / j->batches || close_class(j, c);
}

static bool come_all(joiner *j, const uint32_t *draft, size_t count)
{
    for (size_t i = 0, one; i < count; i += one) {
        one = j->p->draft.op.at[draft[i]].op.batch;
        one = one && j->class_of[draft[i]] == GY_NONE ? one : 1;
        if (!come(j, &draft[i], (uint32_t)one))
            return false;
    }
    return true;
}

/* Ops that were put off come again, as long as batches close. */
static bool come_again(joiner *j)
{
    bool done = true;
    while (j->closed && done) {
        size_t count = j->later.count;
        uint32_t *list = gy_calloc(count + 1, sizeof *list);
        if (!list)
            return false;
        if (count)
            memcpy(list, j->later.at, count * sizeof *list);
        j->later.count = 0;
        j->closed = false;
        done = come_all(j, list, count);
        gy_free(list);
    }
    return done;
}

static bool place_all(joiner *j)
{
    const uint32_t *old = j->p->sequence.draft_of;
    for (size_t i = 0, one; i < j->count; i += one) {
        one = j->p->draft.op.at[old[i]].op.batch && j->class_of[old[i]] == GY_NONE ? j->p->draft.op.at[old[i]].op.batch
                                                                                   : 1;
        if (!come_all(j, &old[i], one) || !come_again(j))
            return false;
    }
    for (size_t i = 0; j->placed < j->count; i = i + 1 < j->classes.count ? i + 1 : 0)
        if (!close_class(j, &j->classes.at[i]) || !come_again(j))
            return false;
    return true;
}

/* ---- all ---- */

static bool make(joiner *j)
{
    size_t n = (size_t)j->count + 1;
    j->class_of = gy_calloc(n, sizeof *j->class_of);
    j->bytes = gy_calloc(n, sizeof *j->bytes);
    j->state = gy_calloc(n, sizeof *j->state);
    j->need = gy_calloc(n + 1, sizeof *j->need);
    j->end = gy_calloc(n, sizeof *j->end);
    j->order = gy_calloc(n, sizeof *j->order);
    if (!j->class_of || !j->bytes || !j->state || !j->need || !j->end || !j->order)
        return false;
    for (size_t e = 0; e < j->p->draft.edges.count; e++)
        j->need[j->p->draft.edges.at[e].to + 1]++;
    for (size_t i = 0; i < j->count; i++)
        j->need[i + 1] += j->need[i];
    return true;
}

static void free_joiner(joiner *j)
{
    void *plain[] = { j->class_of, j->bytes, j->state, j->need, j->end, j->order };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        gy_free(plain[i]);
    for (size_t i = 0; i < j->classes.count; i++)
        gy_vec_free(&j->classes.at[i].open);
    gy_vec_free(&j->classes);
    gy_vec_free(&j->later);
    gy_map_free(&j->found);
}

/* Ops of a batch begin together, when the last of them can. */
static void time_batch(joiner *j, gy_busy *busy, const uint32_t *draft, uint32_t count, gy_ticks *start)
{
    const gy_plan *p = j->p;
    gy_ticks ready = 0;
    for (uint32_t i = 0; i < count; i++)
        for (size_t e = j->need[draft[i]]; e < j->need[draft[i] + 1]; e++) {
            gy_ticks end = j->end[p->draft.edges.at[e].from];
            ready = end > ready ? end : ready;
        }
    gy_ticks begin = gy_busy_begin(busy, p, &p->draft.op.at[*draft], ready);
    for (uint32_t i = 0; i < count; i++) {
        start[draft[i]] = begin < GY_TICKS_MAX ? begin : GY_TICKS_MAX;
        j->end[draft[i]] = gy_ticks_both(begin, p->draft.op.at[*draft].op.duration);
    }
}

/* By the new beginnings, as far as the order goes by them. */
static gantry_status take_over(joiner *j, bool early, gy_ticks *start, gantry_error *err)
{
    gy_busy busy = { 0 };
    gantry_status status = gy_busy_make(&busy, j->p->machine, err);
    for (uint32_t i = 0, one; !status && i < j->count; i += one) {
        uint32_t batch = j->p->draft.op.at[j->order[i]].op.batch;
        one = batch ? batch : 1;
        time_batch(j, &busy, &j->order[i], one, start);
    }
    gy_busy_free(&busy);
    if (!status)
        memcpy(j->p->sequence.draft_of, j->order, j->count * sizeof *j->order);
    return status || !early || gy_sort_by_key(j->p->sequence.draft_of, start, j->count) ? status : gy_fail_nomem(err);
}

gantry_status gy_plan_batch_teams(gy_plan *p, bool early, gy_ticks *start, gantry_error *err)
{
    joiner j = { .p = p, .count = (uint32_t)p->draft.op.count, .batches = p->attempt->join_teams };
    bool several = false;
    p->teams_joined = false;
    p->teams_spare = 0;
    j.dry = !j.batches;
    j.batches = j.dry ? 1 : j.batches;
    if (p->attempt->in_flight > 1 || j.count > UP_TO || (j.dry && p->attempt->settled))
        return GANTRY_OK;
    bool done = make(&j) && classify(&j, &several) && (!several || place_all(&j));
    gantry_status status = done ? GANTRY_OK : gy_fail_nomem(err);
    p->teams_spare = j.spared;
    p->teams_joined = j.joined;
    if (!status && j.joined)
        status = take_over(&j, early, start, err);
    free_joiner(&j);
    return status;
}
