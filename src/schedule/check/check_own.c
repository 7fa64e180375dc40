/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Rule ranks, arrays of inputs and outputs that each rank has itself (schedule/part.h). Of an own input nobody but the
 * caller makes the contents. Of an own output each row is written by ops of one rank, always, and nothing is read, so
 * that the rows of all ranks together are what rank 0 would have.
 */
#include "base/error.h"
#include "base/memory.h"
#include "schedule/check/check.h"
#include "schedule/part.h"
#include <stdlib.h>

typedef struct written {
    int64_t first, last;
    uint32_t buffer, rank, op;
} written;

static int by_rows(const void *a, const void *b)
{
    const written *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (int)(x->op > y->op) - (int)(x->op < y->op);
}

static gantry_status breach(const gantry_schedule *s, const written *w, const char *what, gantry_error *err)
{
    return gy_breach(err, "ranks", "ops", w->op, "%s %s output \"%s\", of which each rank has an array of its own",
                     gy_label_op(s, w->op).at, what, s->graph->buffers.at[w->buffer].name);
}

/* Sorted: rows that begin before the furthest end of rows of another rank are theirs, too. */
static gantry_status check_apart(const gantry_schedule *s, const written *all, size_t count, gantry_error *err)
{
    const written *far = NULL, *next = NULL; /* of the furthest end, and of the furthest among other ranks */
    for (size_t i = 0; i < count; i++) {
        const written *w = &all[i];
        if (far && far->buffer != w->buffer)
            far = next = NULL;
        const written *other = far && far->rank != w->rank ? far : next;
        if (other && other->rank != w->rank && w->first < other->last)
            return breach(s, w, "writes rows that another rank writes, too, of", err);
        if (!far || far->rank == w->rank) {
            far = far && far->last >= w->last ? far : w;
        } else if (w->last > far->last) {
            next = far;
            far = w;
        } else if (!next || w->last > next->last) {
            next = w;
        }
    }
    return GANTRY_OK;
}

static gantry_status look_at_use(const gantry_schedule *s, const uint8_t *own, const gy_op *op, written *w, uint32_t k,
                                 gantry_error *err)
{
    const gy_use *use = &s->use.at[op->use + k];
    const gy_instance *in = &s->instances.at[use->instance];
    *w = (written){ use->first, use->last, in->value, gy_op_rank(s, op), w->op };
    bool input = in->space == GY_SPACE_INPUT && (own[in->value] & GY_OWN_INPUT);
    if (input && (s->graph->buffers.at[in->value].cls != GANTRY_INPUT || s->graph->buffers.at[in->value].external))
        return gy_breach(err, "ranks", "ops", w->op, "%s reads \"%s\" as an input that each rank has, and it is none",
                         gy_label_op(s, w->op).at, s->graph->buffers.at[in->value].name);
    if (in->space != GY_SPACE_OUTPUT || !(own[in->value] & GY_OWN_OUTPUT) || use->first >= use->last) {
        w->last = w->first; /* nothing */
        return GANTRY_OK;
    }
    if (use->mode != GANTRY_WRITE)
        return breach(s, w, "does not only write to", err);
    return op->kind == GY_OP_COLLECTIVE || gy_op_has_flag(op) || gy_op_is_conditional(s, op)
               ? breach(s, w, "may leave rows as they are in", err)
               : GANTRY_OK;
}

gantry_status gy_own_verify(const gantry_schedule *s, const uint8_t *own, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    size_t count = 0;
    written *all = gy_calloc(s->use.count + 1, sizeof *all);
    for (uint32_t id = 0; all && id < s->ops.count && !status; id++)
        for (uint32_t k = 0; k < s->ops.at[id].uses && !status; k++) {
            all[count].op = id;
            status = look_at_use(s, own, &s->ops.at[id], &all[count], k, err);
            count += all[count].first < all[count].last;
        }
    if (all && !status) {
        qsort(all, count, sizeof *all, by_rows);
        status = check_apart(s, all, count, err);
    }
    gy_free(all);
    return all ? status : gy_fail_nomem(err);
}
