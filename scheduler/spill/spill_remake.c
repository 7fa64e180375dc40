/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Making rows again: a node is repeated where it can be, if that takes less time than bringing its rows out and back
 * (swap or recompute: X. Peng et al., Capuchin: Tensor-based GPU Memory Management for Deep Learning, ASPLOS 2020).
 * What the node reads has to be there then, as it was: in memory, outside, or to be made again itself, which counts
 * with its time. So the longer a chain of what was dropped, the sooner something in it is brought out instead, and the
 * chain has a new beginning. What the node reads is kept, somewhere, until then (`needed`).
 */
#include "scheduler/spill/spill.h"

#include "graph/repeat.h"
#include "scheduler/cost/cost.h"

#define DEPTH 16 /* nodes that are repeated one after the other */
#define LOOKS 64 /* instances that are looked at for one decision */

typedef struct chain {
    gy_spill *w;
    uint32_t i, j; /* decided before op i; made at op j */
    uint32_t depth, looks;
    gy_ticks cost;
    bool mark; /* second round: it is decided */
} chain;

static uint32_t writes_of(const gy_spill *w, const gy_op *op)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < op->uses; k++)
        count += w->old->use.at[op->use + k].mode != GANTRY_READ;
    return count;
}

void gy_spill_note_maker(gy_spill *w, uint32_t i, const gy_use *u)
{
    const gy_op *op = &w->old->op.at[i].op;
    gy_held *h = &w->held[u->instance];
    bool all = u->mode == GANTRY_WRITE && u->first <= h->lo && h->hi <= u->last;
    h->maker = GY_NONE;
    bool one = op->kind == GY_OP_COLLECTIVE || writes_of(w, op) == 1;
    bool found = op->kind == GY_OP_COLLECTIVE && op->node == GY_NONE && !op->reduce;
    if (!w->how.remake || !all || !one || (!found && (op->node == GY_NONE || !gy_node_remakes(w->p->graph, op->node))))
        return;
    h->maker = i;
    h->maker_writes = h->writes;
}

static bool can_make(chain *c, uint32_t x, uint32_t depth);

/* Rows of an instance that is there, or whose rows are outside, are at hand at op j too. */
static bool can_keep(chain *c, uint32_t x)
{
    gy_spill *w = c->w;
    gy_held *h = &w->held[x];
    if (h->now != GY_NONE)
        return true;
    const gy_instance *in = gy_spill_old(w, x);
    c->cost += gy_transfer_time(w->p, 0, in->memory, (int64_t)in->bytes);
    if (h->pieced)
        return gy_spill_comes_in_pieces(w, x, c->j);
    if (h->from == GY_NONE)
        return gy_spill_keeps_backing(w, x, c->i, c->j);
    if (h->from != h->source || !gy_spill_comes_again(w, x, c->j))
        return false;
    gy_held *s = &w->held[h->source];
    if (c->mark)
        s->keep = s->keep == GY_NONE || s->keep < c->j ? c->j : s->keep;
    return true;
}

/* Will the rows that op `maker` read be there at op j, as they were? */
static bool can_read(chain *c, const gy_use *u, uint32_t maker, uint32_t depth)
{
    gy_spill *w = c->w;
    uint32_t x = u->instance;
    gy_held *h = &w->held[x];
    const gy_instance *in = gy_spill_old(w, x);
    bool fixed = in->space == GY_SPACE_INPUT || gy_lower_buffer(&w->lower, in->value)->cls == GANTRY_CONST;
    if (++c->looks > LOOKS)
        return false;
    if (!fixed && ((h->writes && h->written > maker) || gy_spill_next_write(w, x, c->j) != GY_NONE))
        return false;
    if (!h->ours)
        return fixed || in->role == GY_ROLE_PERSIST;
    if (h->last < c->j || h->lo > u->first || u->last > h->hi)
        return false;
    if (h->now == GY_NONE && h->remake ? !can_make(c, x, depth + 1) : !can_keep(c, x))
        return false;
    if (c->mark) {
        h->needed = h->needed == GY_NONE || h->needed < c->j ? c->j : h->needed;
        h->soon = h->soon == GY_NONE || h->soon < c->i || h->soon > c->j ? c->j : h->soon;
    }
    return true;
}

bool gy_spill_is_spared(const gy_spill *w, uint32_t maker, const gy_use *u)
{
    const gy_held *h = &w->held[u->instance];
    return w->old->op.at[maker].op.node == GY_NONE && u->mode != GANTRY_READ && !(h->remake && h->maker == maker);
}

/* A collective of the graph that is carried out again writes to all its ranks again: these rows are there then, or come
 * with it. One that was found writes where rows are missing. */
static bool can_write(const chain *c, const gy_use *u, uint32_t maker)
{
    const gy_spill *w = c->w;
    const gy_held *h = &w->held[u->instance];
    if (w->old->op.at[maker].op.node == GY_NONE)
        return true;
    return h->ours && h->maker == maker && h->maker_writes == h->writes && h->home == GY_NONE && h->last >= c->j &&
           w->ground[gy_spill_old(w, u->instance)->memory].ours && gy_spill_next_write(w, u->instance, c->j) == GY_NONE;
}

static bool can_make(chain *c, uint32_t x, uint32_t depth)
{
    const gy_spill *w = c->w;
    uint32_t maker = w->held[x].maker;
    const gy_op *op = &w->old->op.at[maker].op;
    c->depth = depth > c->depth ? depth : c->depth;
    c->cost += op->duration;
    if (c->depth > DEPTH)
        return false;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *u = &w->old->use.at[op->use + k];
        if (u->mode == GANTRY_READ && u->first < u->last && !can_read(c, u, maker, depth))
            return false;
        if (u->mode != GANTRY_READ && u->instance != x && !can_write(c, u, maker))
            return false;
    }
    return true;
}

/* The op before which its maker is carried out again, if not sooner than for its own next use j: other rows of the
 * maker that left may be asked for first. */
static uint32_t made_at(const gy_spill *w, uint32_t x, uint32_t i, uint32_t j)
{
    const gy_op *op = &w->old->op.at[w->held[x].maker].op;
    for (uint32_t k = 0; k < op->uses; k++) {
        const gy_use *u = &w->old->use.at[op->use + k];
        const gy_held *h = &w->held[u->instance];
        uint32_t next = u->mode != GANTRY_READ && h->remake ? gy_spill_next(w, u->instance, i) : j;
        j = next < j ? next : j;
    }
    return j;
}

bool gy_spill_plan_remake(gy_spill *w, uint32_t x, uint32_t i, uint32_t j)
{
    gy_held *h = &w->held[x];
    j = h->maker != GY_NONE && j != GY_NONE ? made_at(w, x, i, j) : j;
    const gy_instance *in = gy_spill_old(w, x);
    chain c = { .w = w, .i = i, .j = j };
    if (!w->how.remake || h->maker == GY_NONE || h->maker_writes != h->writes || h->home != GY_NONE || j == GY_NONE ||
        (h->keep != GY_NONE && h->keep >= i) || !w->ground[in->memory].ours || !can_make(&c, x, 1))
        return false;
    gy_ticks copies = gy_transfer_time(w->p, in->memory, 0, (int64_t)in->bytes) +
                      gy_transfer_time(w->p, 0, in->memory, (int64_t)in->bytes);
    if (w->how.way->queued)
        copies = copies / 4 * (w->how.way->queued - 1) + gy_spill_queue(w, in->memory);
    if (c.cost >= copies)
        return false;
    c = (chain){ .w = w, .i = i, .j = j, .mark = true };
    can_make(&c, x, 1);
    h->remake = true;
    h->backing = h->from = GY_NONE;
    return true;
}
