/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of inputs and outputs that each rank has itself (schedule/part.h). */
#include "schedule/ranks/ranks.h"

#include "base/error.h"
#include "base/imap.h"
#include "base/memory.h"

typedef struct owners {
    const gantry_schedule *s;
    gy_imap *rows;   /* per buffer: 1 + the rank whose ops write the rows; no domain before the first write */
    uint8_t *shared; /* per buffer: it has to be on rank 0 */
    bool failed;
} owners;

static const gy_instance *instance_of(const gantry_schedule *s, uint32_t use)
{
    return &s->instances.at[s->use.at[use].instance];
}

/* An op that may leave rows out, or that combines what several ranks have, is no owner of rows. */
static bool owns(const owners *o, const gy_op *op, uint32_t use)
{
    const gy_instance *i = instance_of(o->s, use);
    return gy_part_is_array(o->s, i) && o->s->use.at[use].mode == GANTRY_WRITE &&
           !o->s->graph->buffers.at[i->value].external && op->kind != GY_OP_COLLECTIVE && !gy_op_has_flag(op) &&
           !gy_op_is_conditional(o->s, op);
}

/* The rows have no other owner. */
static bool add_rows(owners *o, uint32_t buffer, int64_t first, int64_t last, uint64_t owner)
{
    gy_imap *map = &o->rows[buffer];
    if (!map->count && !gy_imap_init(map, 0, o->s->graph->buffers.at[buffer].rows, 0))
        return false;
    uint32_t i = gy_imap_find(map, first);
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i))
        o->shared[buffer] |= map->at[i].payload && map->at[i].payload != owner;
    return gy_imap_set(map, first, last, owner);
}

static void add_op(owners *o, const gy_op *op)
{
    for (uint32_t use = op->use; use < op->use + op->uses; use++) {
        const gy_use *u = &o->s->use.at[use];
        uint32_t value = instance_of(o->s, use)->value;
        if (instance_of(o->s, use)->space != GY_SPACE_OUTPUT || u->first >= u->last)
            continue;
        if (!owns(o, op, use))
            o->shared[value] = 1;
        else
            o->failed = o->failed || !add_rows(o, value, u->first, u->last, 1 + (uint64_t)gy_op_rank(o->s, op));
    }
}

static bool begin(owners *o, const gantry_schedule *s)
{
    *o = (owners){ .s = s };
    o->rows = gy_calloc(s->graph->buffers.count + 1, sizeof *o->rows);
    o->shared = gy_calloc(s->graph->buffers.count + 1, 1);
    o->failed = !o->rows || !o->shared;
    for (size_t i = 0; i < s->ops.count && !o->failed; i++)
        add_op(o, &s->ops.at[i]);
    return !o->failed;
}

static void end(owners *o)
{
    for (size_t b = 0; o->rows && b < o->s->graph->buffers.count; b++)
        gy_imap_free(&o->rows[b]);
    gy_free(o->rows);
    gy_free(o->shared);
}

gantry_status gy_own_outputs(uint8_t *own, const gantry_schedule *s, gantry_error *err)
{
    owners o;
    bool made = begin(&o, s);
    for (size_t b = 0; made && b < s->graph->buffers.count; b++)
        if (o.rows[b].count && !o.shared[b])
            own[b] |= GY_OWN_OUTPUT;
    end(&o);
    return made ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_own_list_make(gy_own_list *list, const uint8_t *own, const gantry_schedule *s, gantry_error *err)
{
    owners o;
    *list = (gy_own_list){ 0 };
    bool made = begin(&o, s);
    for (uint32_t b = 0; made && b < s->graph->buffers.count; b++) {
        const gy_imap *map = &o.rows[b];
        uint32_t i = own[b] & GY_OWN_OUTPUT && map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
        for (; i != GY_IMAP_NONE && made; i = gy_imap_next(map, i))
            if (map->at[i].payload)
                made = gy_vec_push(
                    list, ((gy_own_rows){ b, (uint32_t)map->at[i].payload - 1, map->at[i].first, map->at[i].last }));
    }
    end(&o);
    return made ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_own_input_rows(const gantry_schedule *s, const uint8_t *own, uint32_t rank, uint32_t buffer, int64_t *first,
                       int64_t *last)
{
    const gy_part part = { .rank = rank, .own = own };
    *first = *last = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = 0; k < op->uses; k++) {
            const gy_use *u = &s->use.at[op->use + k];
            const gy_instance *in = &s->instances.at[u->instance];
            if (in->space != GY_SPACE_INPUT || in->value != buffer || u->first >= u->last ||
                gy_part_rank(&part, s, op, k) != rank)
                continue;
            *first = *last == 0 || u->first < *first ? u->first : *first;
            *last = u->last > *last ? u->last : *last;
        }
    }
}
