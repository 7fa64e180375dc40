/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of collectives: one exchange that has the pieces of all. Pieces stay what they are, so every byte is combined
 * in the order in which it is without a batch. */
#include "backends/cuda/collective/share.h"

#include "base/error.h"

const gy_exchange *gy_collective_exchange(const gy_cuda *h, uint32_t op)
{
    return h->op[op].joint ? h->op[op].joint : h->op[op].exchange;
}

static const gy_op *op_of(const gy_cuda *h, uint32_t op)
{
    return &h->job->schedule->ops.at[op];
}

/* Ops are carried out one by one where each is to be seen alone, and where the host builds results aside. */
static bool can_join(const gy_cuda *h, uint32_t head)
{
    const gy_op *op = op_of(h, head);
    bool can = op->kind == GY_OP_COLLECTIVE && op->batch && !h->job->apart;
    for (uint32_t i = head; can && i < head + op->batch; i++)
        can = h->op[i].exchange && !h->op[i].exchange->staged;
    return can;
}

/* Room for all, and what is said of all. */
static gy_exchange *make_joint(gy_cuda *h, uint32_t head)
{
    gy_exchange *all = gy_arena_calloc(&h->arena, 1, sizeof *all);
    if (!all)
        return NULL;
    *all = *h->op[head].exchange;
    for (uint32_t i = head + 1; i < head + op_of(h, head)->batch; i++) {
        const gy_exchange *x = h->op[i].exchange;
        all->pieces += x->pieces;
        all->ends += x->ends;
        all->bytes += x->bytes;
        all->rounds = x->rounds > all->rounds ? x->rounds : all->rounds;
        all->most_sources = x->most_sources > all->most_sources ? x->most_sources : all->most_sources;
    }
    all->piece = gy_arena_calloc(&h->arena, (size_t)all->pieces + 1, sizeof *all->piece);
    all->end = gy_arena_calloc(&h->arena, (size_t)all->ends + 1, sizeof *all->end);
    return all->piece && all->end ? all : NULL;
}

/* Uses are counted from the first of the head, also those of its members: numbers below go round. */
static void add_ends(const gy_cuda *h, gy_exchange *all, uint32_t head)
{
    uint32_t count = 0;
    for (uint32_t i = head; i < head + op_of(h, head)->batch; i++)
        for (uint32_t k = 0; k < h->op[i].exchange->ends; k++) {
            gy_exchange_end *end = &all->end[count++];
            *end = h->op[i].exchange->end[k];
            end->use += op_of(h, i)->use - op_of(h, head)->use;
        }
}

/* By rounds, as those of one. */
static void add_pieces(const gy_cuda *h, gy_exchange *all, uint32_t head)
{
    uint32_t count = 0;
    for (uint32_t round = 0; round < all->rounds; round++) {
        uint32_t ends = 0;
        for (uint32_t i = head; i < head + op_of(h, head)->batch; i++) {
            const gy_exchange *x = h->op[i].exchange;
            for (uint32_t k = 0; k < x->pieces; k++) {
                if (x->piece[k].round != round)
                    continue;
                gy_exchange_piece *piece = &all->piece[count++];
                *piece = x->piece[k];
                piece->source += ends;
                piece->target += ends;
            }
            ends += x->ends;
        }
    }
}

gantry_status gy_collectives_join(gy_cuda *h, gantry_error *err)
{
    for (uint32_t i = 0; i < h->job->schedule->ops.count; i++) {
        if (!can_join(h, i))
            continue;
        gy_exchange *all = make_joint(h, i);
        if (!all)
            return gy_fail_nomem(err);
        add_ends(h, all, i);
        add_pieces(h, all, i);
        h->op[i].joint = all;
        for (uint32_t k = i + 1; k < i + op_of(h, i)->batch; k++)
            h->op[k].called = true;
    }
    return GANTRY_OK;
}
