/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting the draft: the first copy of a cluster becomes the collective, the others go, edges follow. */
#include "scheduler/lower/find_collectives.h"

#include "base/error.h"
#include <stdlib.h>

#define ALONE UINT32_MAX

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The memories that take part, rising: the rank of a memory is its place. */
static uint32_t *list_ranks(const gy_cluster *c, uint32_t *count)
{
    size_t all = c->read.count + c->memory.count;
    uint32_t *memory = gy_calloc(all, sizeof *memory);
    if (!memory)
        return NULL;
    for (size_t i = 0; i < all; i++)
        memory[i] = i < c->read.count ? c->read.at[i].memory : c->memory.at[i - c->read.count];
    qsort(memory, all, sizeof *memory, by_number);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (!i || memory[i] != memory[i - 1])
            memory[(*count)++] = memory[i];
    return memory;
}

static bool add_use(gy_plan *p, const gy_span *s, uint8_t mode, const uint32_t *memory)
{
    uint32_t rank = 0;
    while (memory[rank] != s->memory)
        rank++;
    gy_use u = { s->instance, mode, (uint16_t)rank, s->first, s->last };
    return gy_vec_push(&p->draft.use, u);
}

/* Neighbouring rows of one instance are one read of a scatter; the others name each piece. */
static bool add_reads(gy_plan *p, const gy_cluster *c, const uint32_t *memory)
{
    for (size_t i = 0, next; i < c->read.count; i = next) {
        gy_span run = c->read.at[i];
        for (next = i + 1; next < c->read.count && c->collective == GANTRY_SCATTER; next++) {
            if (c->read.at[next].first != run.last)
                break;
            run.last = c->read.at[next].last;
        }
        if (!add_use(p, &run, GANTRY_READ, memory))
            return false;
    }
    return true;
}

static bool add_uses(gy_plan *p, const gy_cluster *c, const uint32_t *memory, gy_op *op)
{
    op->use = (uint32_t)p->draft.use.count;
    if (!add_reads(p, c, memory))
        return false;
    op->ins = (uint32_t)p->draft.use.count - op->use;
    for (size_t i = 0; i < c->write.count; i++)
        if (!add_use(p, &c->write.at[i], GANTRY_WRITE, memory))
            return false;
    op->uses = (uint32_t)p->draft.use.count - op->use;
    return true;
}

/* Where the first of its copies stands, or that to halfway of it. */
static uint32_t place_of(const gy_plan *p, const gy_cluster *c)
{
    uint32_t first = c->copy.at[0], hop = p->draft.op.at[first].hop;
    return hop ? hop - 1 : first;
}

static gantry_status make_op(gy_plan *p, const gy_cluster *c, gantry_error *err)
{
    uint32_t count = 0, *memory = list_ranks(c, &count);
    gy_draft_op *d = &p->draft.op.at[place_of(p, c)];
    gantry_status status = memory ? GANTRY_OK : gy_fail_nomem(err);
    d->lane = GY_LANE_COLLECTIVE;
    d->op.kind = GY_OP_COLLECTIVE;
    d->op.collective = c->collective;
    d->op.algorithm = (uint8_t)c->way.algorithm;
    d->op.duration = c->way.time;
    d->op.provenance = c->way.provenance;
    d->rank = (uint32_t)p->rank_device.count;
    d->ranks = count;
    for (uint32_t i = 0; i < count && !status; i++)
        if (!gy_vec_push(&p->rank_device, gy_plan_device_of(p, memory[i])))
            status = gy_fail_nomem(err);
    if (!status && !add_uses(p, c, memory, &d->op))
        status = gy_fail_nomem(err);
    gy_free(memory);
    return status;
}

/* `to[i]`: the new number of draft i; members of a cluster have that of the collective. */
static bool renumber(gy_plan *p, const uint32_t *to)
{
    size_t kept = 0;
    for (size_t e = 0; e < p->draft.edges.count; e++) {
        gy_edge edge = p->draft.edges.at[e];
        edge.from = to[edge.from];
        edge.to = to[edge.to];
        if (edge.from != edge.to)
            p->draft.edges.at[kept++] = edge;
    }
    p->draft.edges.count = kept;
    return !kept || gy_edges_sort(p->draft.edges.at, kept, false);
}

static bool drop_copies(gy_plan *p, uint32_t *head, uint32_t *to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->draft.op.count; i++) {
        to[i] = head[i] == ALONE || head[i] == i ? kept : to[head[i]];
        if (to[i] == kept)
            p->draft.op.at[kept++] = p->draft.op.at[i];
    }
    p->draft.op.count = kept;
    return renumber(p, to);
}

gantry_status gy_clusters_merge(gy_plan *p, const gy_clusters *clusters, gantry_error *err)
{
    uint32_t *head = gy_calloc(p->draft.op.count + 1, sizeof *head); /* the first copy of the cluster; ALONE: of none */
    uint32_t *to = gy_calloc(p->draft.op.count + 1, sizeof *to);
    gantry_status status = head && to ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; i < p->draft.op.count && !status; i++)
        head[i] = ALONE;
    for (size_t i = 0; i < clusters->count && !status; i++) {
        const gy_cluster *c = &clusters->at[i];
        if (!c->collective)
            continue;
        p->collectives++;
        for (size_t n = 0; n < c->copy.count; n++) {
            uint32_t hop = p->draft.op.at[c->copy.at[n]].hop;
            head[c->copy.at[n]] = place_of(p, c);
            head[hop ? hop - 1 : c->copy.at[n]] = place_of(p, c);
        }
        status = make_op(p, c, err);
    }
    if (!status && p->collectives && !drop_copies(p, head, to))
        status = gy_fail_nomem(err);
    gy_free(head);
    gy_free(to);
    return status;
}
