/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Reductions. Where one memory contributes, contributions go straight to the value: its previous rows are brought, rows
 * that nothing has written are set to the identity. Where several do, each has an accumulator that begins as the
 * identity, and a collective combines the previous value and the accumulators, by memory, for those who read the
 * result: all of it (reduce, all_reduce), or each a part of its own (reduce_scatter).
 */
#include "scheduler/collective/collective.h"
#include "scheduler/lower/lowering.h"

#include "base/error.h"

/* Sets rows of an instance to the identity of `reduce`, on the device. */
static gantry_status fill_identity(gy_lower *l, uint32_t instance, uint32_t device, uint8_t reduce, int64_t first,
                                   int64_t last, uint32_t *id, gantry_error *err)
{
    gy_plan *p = l->p;
    const gy_device *dev = &p->machine->device[device];
    double bytes = (double)gy_buffer_span(gy_lower_buffer(l, p->draft.instance.at[instance].value), first, last);
    gy_draft_op d = { .device = device, .lane = GY_LANE_COMPUTE };
    d.op = (gy_op){ .kind = GY_OP_FILL, .reduce = reduce, .node = GY_NONE, .provenance = GY_COST_ROOFLINE };
    d.op.duration = dev->launch;
    if (dev->bandwidth_gbs > 0)
        d.op.duration += gy_ticks_from_us(bytes / (dev->bandwidth_gbs * 1e3));
    d.end = d.op.duration;
    GY_TRY(gy_lower_op(l, &d, id, err));
    return gy_lower_use(l, instance, GANTRY_WRITE, 0, first, last, err);
}

/* ---- one memory ---- */

static gantry_status fill_unwritten(gy_lower *l, uint32_t value, const gy_access *a, uint32_t instance, uint32_t device,
                                    gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    int64_t end = a->last;
    for (int64_t row = a->first; row < a->last && !status; row = end) {
        int64_t last = a->last;
        end = row;
        while (end < a->last && !gy_lower_holders(l, value, end, &last))
            end = last < a->last ? last : a->last;
        if (end == row) { /* written: go on behind it */
            (void)gy_lower_holders(l, value, row, &last);
            end = last < a->last ? last : a->last;
            continue;
        }
        gy_holder h = { instance, GY_NONE };
        status = fill_identity(l, instance, device, a->mode, row, end, &h.draft, err);
        if (!status)
            status = gy_lower_hold(l, value, row, end, &h, 1, err);
    }
    return status;
}

static gantry_status contribute_in_place(gy_lower *l, uint32_t task, size_t i, const gy_access *a, uint32_t *instance,
                                         gantry_error *err)
{
    uint32_t value = l->p->flow->access[i].value;
    GY_TRY(gy_lower_settle(l, value, a->first, a->last, err));
    GY_TRY(gy_lower_area(l, l->area_of[i], instance, err));
    GY_TRY(gy_lower_bring(l, value, a->first, a->last, *instance, err));
    return fill_unwritten(l, value, a, *instance, l->p->placed.device[task], err);
}

/* ---- several memories ---- */

static gantry_status accumulate(gy_lower *l, gy_epoch *e, uint32_t task, uint32_t k, uint32_t *instance,
                                gantry_error *err)
{
    uint32_t memory = gy_lower_memory(l, task, k), id;
    gy_member *m = e->member.at;
    while (m->memory != memory)
        m++;
    gantry_status status = GANTRY_OK;
    if (m->instance == GY_NONE) {
        gy_instance in = { .value = e->value, .memory = memory, .first = m->first, .last = m->last };
        in.role = GY_ROLE_ACCUMULATOR;
        in.op = e->op;
        status = gy_lower_instance(l, &in, &m->instance, err);
        if (!status)
            status = fill_identity(l, m->instance, m->device, e->op, m->first, m->last, &id, err);
    }
    *instance = m->instance;
    return status;
}

/* The rows have contributions in accumulators from now on, until they are settled. */
static gantry_status mark_pending(gy_lower *l, uint32_t value, const gy_access *a, uint32_t epoch, gantry_error *err)
{
    bool done = gy_imap_set(l->open[value], a->first, a->last, (uint64_t)epoch + 1);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* Combines epochs other than `mine` (an epoch + 1; 0: none) on the rows. */
static gantry_status settle_others(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint64_t mine,
                                   gantry_error *err);

gantry_status gy_lower_contribute(gy_lower *l, uint32_t task, uint32_t k, uint32_t *instance, gantry_error *err)
{
    size_t i = l->p->flow->task[task].access + k;
    const gy_access *a = gy_flow_access_of(l->p->graph, l->p->flow, i);
    gy_epoch *e = gy_epoch_root(l, l->epoch_of[i]);
    uint32_t self = (uint32_t)(e - l->epoch.at);
    GY_TRY(gy_lower_know(l, e->value, err));
    if (!e->split)
        return contribute_in_place(l, task, i, a, instance, err);
    GY_TRY(settle_others(l, e->value, a->first, a->last, (uint64_t)self + 1, err));
    GY_TRY(accumulate(l, e, task, k, instance, err));
    return mark_pending(l, e->value, a, self, err);
}

/* ---- combining ---- */

/* The memories that take part, by number; the rank of a memory is its place in the list. */
typedef struct ranks {
    uint32_t *memory, count;
} ranks;

static void add_rank(ranks *r, uint32_t memory)
{
    uint32_t i = r->count;
    for (uint32_t k = 0; k < r->count; k++)
        if (r->memory[k] == memory)
            return;
    for (; i && r->memory[i - 1] > memory; i--)
        r->memory[i] = r->memory[i - 1];
    r->memory[i] = memory;
    r->count++;
}

static uint32_t rank_of(const ranks *r, uint32_t memory)
{
    uint32_t i = 0;
    while (r->memory[i] != memory)
        i++;
    return i;
}

static gantry_status make_ranks(gy_lower *l, const gy_epoch *e, ranks *r, gantry_error *err)
{
    r->count = 0;
    r->memory = gy_arena_alloc(&l->arena, (e->member.count + e->reader.count) * sizeof *r->memory);
    if (!r->memory)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < e->member.count; i++)
        add_rank(r, e->member.at[i].memory);
    for (size_t i = 0; i < e->reader.count; i++)
        add_rank(r, e->reader.at[i].memory);
    return GANTRY_OK;
}

/* A member's own device, else the one that stands for the memory. */
static uint32_t device_of_rank(const gy_lower *l, const gy_epoch *e, uint32_t memory)
{
    for (size_t i = 0; i < e->member.count; i++)
        if (e->member.at[i].memory == memory)
            return e->member.at[i].device;
    return gy_plan_device_of(l->p, memory);
}

static gantry_status add_rank_devices(gy_lower *l, const gy_epoch *e, const ranks *r, gy_draft_op *d, gantry_error *err)
{
    gy_plan *p = l->p;
    d->rank = (uint32_t)p->rank_device.count;
    d->ranks = r->count;
    for (uint32_t i = 0; i < r->count; i++)
        if (!gy_vec_push(&p->rank_device, device_of_rank(l, e, r->memory[i])))
            return gy_fail_nomem(err);
    return GANTRY_OK;
}

/* A fill node left the identity of the reduction there, in every row: there is nothing to read. */
static bool is_identity(const gy_lower *l, const gy_epoch *e, const gy_holders *h)
{
    const gy_plan *p = l->p;
    for (uint32_t i = 0; i < h->count; i++) {
        const gy_op *op = h->at[i].draft == GY_NONE ? NULL : &p->draft.op.at[h->at[i].draft].op;
        if (op && op->kind == GY_OP_FILL && op->node != GY_NONE &&
            gy_fill_is_identity(p->graph, op->node, (gantry_access)e->op))
            return true;
    }
    return false;
}

/* Rows from *first on, up to `last` at most, that held something before the reduction: their end, and their beginning
 * in *first. No more of them: `last` in both. */
static int64_t next_before(const gy_lower *l, const gy_epoch *e, int64_t *first, int64_t last)
{
    bool any = false;
    int64_t end = *first, next = last;
    for (; end < last; end = next) {
        next = last;
        const gy_holders *h = gy_lower_holders(l, e->value, end, &next);
        next = next < last ? next : last;
        bool before = h && !is_identity(l, e, h);
        if (any && !before)
            return end;
        *first = any ? *first : before ? end : next;
        any = any || before;
    }
    return end;
}

/* Reads the rows as they were before the reduction; `home` has all of them by now. */
static gantry_status use_before(gy_lower *l, const gy_epoch *e, uint32_t rank, uint32_t home,
                                const gy_result_reader *rows, gantry_error *err)
{
    for (int64_t row = rows->first, end; row < rows->last; row = end) {
        end = next_before(l, e, &row, rows->last);
        if (row < end)
            GY_TRY(gy_lower_use(l, home, GANTRY_READ, rank, row, end, err));
    }
    return GANTRY_OK;
}

static gantry_status bring_before(gy_lower *l, const gy_epoch *e, const gy_result_reader *rows, uint32_t to,
                                  gantry_error *err)
{
    for (int64_t row = rows->first, end; row < rows->last; row = end) {
        end = next_before(l, e, &row, rows->last);
        if (row < end)
            GY_TRY(gy_lower_bring(l, e->value, row, end, to, err));
    }
    return GANTRY_OK;
}

/* Reads: what the rows held before, in those that get them (in the first of those that get all), then the accumulators.
 */
static gantry_status use_reads(gy_lower *l, const gy_epoch *e, const ranks *r, const gy_holder *dest, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < (e->scatter ? e->reader.count : 1) && !status; i++)
        status = use_before(l, e, rank_of(r, e->reader.at[i].memory), dest[i].instance, &e->reader.at[i], err);
    for (size_t i = 0; i < e->member.count && !status; i++) {
        const gy_member *m = &e->member.at[i];
        status = gy_lower_use(l, m->instance, GANTRY_READ, rank_of(r, m->memory), m->first, m->last, err);
    }
    return status;
}

static gantry_status use_writes(gy_lower *l, const gy_epoch *e, const ranks *r, const gy_holder *dest,
                                gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < e->reader.count && !status; i++) {
        const gy_result_reader *to = &e->reader.at[i];
        status = gy_lower_use(l, dest[i].instance, GANTRY_WRITE, rank_of(r, to->memory), to->first, to->last, err);
    }
    return status;
}

/* How, and how long: from the uses of the op. */
static gantry_status choose_algorithm(gy_lower *l, uint32_t id, gantry_error *err)
{
    gy_plan *p = l->p;
    gy_op *op = &p->draft.op.at[id].op;
    gy_group_span *span = gy_arena_alloc(&l->arena, (op->uses + 1) * sizeof *span);
    gy_way choice;
    gy_group g;
    for (uint32_t i = 0; span && i < op->uses; i++) {
        const gy_use *u = &p->draft.use.at[op->use + i];
        const gy_instance *in = &p->draft.instance.at[u->instance];
        const gy_buffer *b = gy_lower_buffer(l, in->value);
        span[i] =
            (gy_group_span){ in->memory, u->instance, gy_buffer_offset(b, u->first), gy_buffer_offset(b, u->last) };
    }
    if (!span || !gy_group_of_rows(&g, op->collective, op->reduce, span, op->ins, op->uses - op->ins))
        return gy_fail_nomem(err);
    gy_group_type(&g, gy_lower_buffer(l, p->draft.instance.at[p->draft.use.at[op->use].instance].value)->dtype);
    bool chosen = gy_collective_choose(p->net, &g, &choice);
    gy_group_free(&g);
    if (!chosen)
        return gy_fail_nomem(err);
    op->duration = choice.time;
    op->algorithm = (uint8_t)choice.algorithm;
    op->provenance = choice.provenance;
    return GANTRY_OK;
}

/* And when it is expected to end, by its edges: those from `edge` on. */
static gantry_status time_collective(gy_lower *l, uint32_t id, size_t edge, gantry_error *err)
{
    gy_plan *p = l->p;
    GY_TRY(choose_algorithm(l, id, err));
    for (; edge < p->draft.edges.count; edge++) {
        gy_ticks end = p->draft.op.at[p->draft.edges.at[edge].from].end + p->draft.op.at[id].op.duration;
        p->draft.op.at[id].end = end > p->draft.op.at[id].end ? end : p->draft.op.at[id].end;
    }
    return GANTRY_OK;
}

static gy_draft_op combine_op(const gy_epoch *e)
{
    gantry_collective kind = e->scatter            ? GANTRY_REDUCE_SCATTER
                             : e->reader.count > 1 ? GANTRY_ALL_REDUCE
                                                   : GANTRY_REDUCE;
    gy_draft_op d = { .lane = GY_LANE_COLLECTIVE };
    d.op = (gy_op){ .kind = GY_OP_COLLECTIVE, .collective = (uint8_t)kind, .reduce = e->op, .node = GY_NONE };
    return d;
}

/* Where the result goes, with what was there before. */
static gantry_status prepare_dests(gy_lower *l, const gy_epoch *e, gy_holder *dest, gantry_error *err)
{
    for (size_t i = 0; i < e->reader.count; i++)
        GY_TRY(gy_lower_area(l, l->area_of[e->reader.at[i].index], &dest[i].instance, err));
    for (size_t i = 0; i < (e->scatter ? e->reader.count : 1); i++)
        GY_TRY(bring_before(l, e, &e->reader.at[i], dest[i].instance, err));
    return GANTRY_OK;
}

static gantry_status make_combination(gy_lower *l, const gy_epoch *e, const gy_holder *dest, uint32_t *id,
                                      gantry_error *err)
{
    gy_plan *p = l->p;
    ranks r;
    gy_draft_op d = combine_op(e);
    size_t edge = p->draft.edges.count;
    gantry_status status = make_ranks(l, e, &r, err);
    if (!status)
        status = add_rank_devices(l, e, &r, &d, err);
    if (!status)
        status = gy_lower_op(l, &d, id, err);
    if (!status)
        status = use_reads(l, e, &r, dest, err);
    if (status)
        return status;
    p->draft.op.at[*id].op.ins = p->draft.op.at[*id].op.uses;
    status = use_writes(l, e, &r, dest, err);
    return status ? status : time_collective(l, *id, edge, err);
}

static gantry_status combine(gy_lower *l, gy_epoch *e, gantry_error *err)
{
    uint32_t id = GY_NONE;
    gy_holder *dest = gy_arena_calloc(&l->arena, e->reader.count, sizeof *dest);
    if (!dest)
        return gy_fail_nomem(err);
    GY_TRY(prepare_dests(l, e, dest, err));
    GY_TRY(make_combination(l, e, dest, &id, err));
    for (size_t i = 0; i < e->reader.count; i++)
        dest[i].draft = id;
    for (size_t i = 0; i < e->reader.count && e->scatter; i++)
        GY_TRY(gy_lower_hold(l, e->value, e->reader.at[i].first, e->reader.at[i].last, &dest[i], 1, err));
    return e->scatter ? GANTRY_OK : gy_lower_hold(l, e->value, e->first, e->last, dest, (uint32_t)e->reader.count, err);
}

static gantry_status settle_epoch(gy_lower *l, uint32_t epoch, gantry_error *err)
{
    gy_epoch *e = &l->epoch.at[epoch];
    GY_TRY(combine(l, e, err));
    return gy_imap_set(l->open[e->value], e->first, e->last, 0) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status settle_others(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint64_t mine,
                                   gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (!l->reduced || !l->reduced[value] || !l->open[value])
        return GANTRY_OK;
    for (int64_t row = first; row < last && !status;) {
        uint32_t i = gy_imap_find(l->open[value], row);
        uint64_t pending = l->open[value]->at[i].payload;
        if (pending && pending != mine)
            status = settle_epoch(l, (uint32_t)(pending - 1), err);
        else
            row = l->open[value]->at[i].last;
    }
    return status;
}

gantry_status gy_lower_settle(gy_lower *l, uint32_t value, int64_t first, int64_t last, gantry_error *err)
{
    return settle_others(l, value, first, last, 0, err);
}
