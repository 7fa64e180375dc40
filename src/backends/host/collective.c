/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of the CPU: the pieces of an exchange are combined and moved by the thread that executes the op. */
#include "backends/host/ops.h"

#include "base/error.h"
#include "run/reduce.h"
#include <string.h>

gantry_status gy_host_collective_make(gy_host_collective **made, gy_arena *arena, const gy_job *job, uint32_t op,
                                      gantry_error *err)
{
    gy_host_collective *c = gy_arena_calloc(arena, 1, sizeof *c);
    gy_exchange *x = NULL;
    GY_TRY(c ? gy_exchange_make(&x, arena, job->schedule, job->graph, op, err) : gy_fail_nomem(err));
    c->exchange = x;
    c->from = gy_arena_calloc(arena, x->most_sources + 1, sizeof *c->from);
    c->stage = x->staged ? gy_arena_alloc(arena, x->bytes) : NULL;
    if (!c->from || (x->staged && !c->stage))
        return gy_fail_nomem(err);
    *made = c;
    return GANTRY_OK;
}

/* Combines the sources of a piece into `to`. */
static void combine(const gy_host_collective *c, const gy_exchange_piece *piece, void *const *at, void *to)
{
    const gy_exchange *x = c->exchange;
    for (uint32_t k = 0; k < piece->sources; k++) {
        const gy_exchange_end *end = &x->end[piece->source + k];
        c->from[k] = (const char *)at[end->use] + end->offset;
    }
    if (piece->sources == 1)
        memmove(to, c->from[0], piece->bytes);
    else
        gy_reduce(x->dtype, x->reduce, to, c->from, piece->sources, piece->bytes / gantry_dtype_size(x->dtype));
}

static char *target_at(const gy_exchange *x, const gy_exchange_piece *piece, void *const *at, uint32_t k)
{
    const gy_exchange_end *end = &x->end[piece->target + k];
    return (char *)at[end->use] + end->offset;
}

static void deliver(const gy_exchange *x, const gy_exchange_piece *piece, void *const *at, const char *from,
                    uint32_t first)
{
    for (uint32_t k = first; k < piece->targets; k++)
        memmove(target_at(x, piece, at, k), from, piece->bytes);
}

void gy_host_collective_execute(const gy_host_collective *c, void *const *at)
{
    const gy_exchange *x = c->exchange;
    char *stage = c->stage;
    for (uint32_t i = 0; i < x->pieces; i++) {
        const gy_exchange_piece *piece = &x->piece[i];
        if (piece->bytes == 0 || piece->targets == 0)
            continue;
        if (c->stage) {
            combine(c, piece, at, stage);
            stage += piece->bytes;
        } else {
            char *first = target_at(x, piece, at, 0);
            combine(c, piece, at, first);
            deliver(x, piece, at, first, 1);
        }
    }
    stage = c->stage;
    for (uint32_t i = 0; c->stage && i < x->pieces; stage += x->piece[i].bytes, i++)
        deliver(x, &x->piece[i], at, stage, 0);
}
