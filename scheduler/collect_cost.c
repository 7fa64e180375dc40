/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Is a collective as fast as its copies? Copies that go at the same time need at least the time of the slowest, and at
 * least what the busiest resource (link, port, bus) needs for all bytes that cross it. Both ways of moving the rows are
 * judged by that. A collective begins when all of its copies could have begun; a broadcast may also pass pieces around
 * a ring (2 (p-1) steps of 1/p of the bytes), an all_gather too (p-1 steps of the largest piece).
 */
#include "scheduler/collect.h"

#include "base/error.h"

/* The copies all at once. */
static gantry_status together(const gy_plan *p, const gy_cluster *c, gy_ticks *time, gantry_error *err)
{
    const gantry_machine *m = p->machine;
    int64_t *bytes = gy_calloc((size_t)m->resources + 1, sizeof *bytes);
    gy_ticks longest = 0, latency = 0;
    if (!bytes)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < c->copy.count; i++) {
        const gy_use *u = &p->use.at[p->draft.at[c->copy.at[i]].op.use];
        const gy_route *r =
            gy_machine_route(m, p->instance.at[u[0].instance].memory, p->instance.at[u[1].instance].memory);
        int64_t size = gy_buffer_span(gy_value_buffer(p->graph, p->flow, c->value), u[0].first, u[0].last);
        gy_ticks alone = p->draft.at[c->copy.at[i]].op.duration, l = gy_route_latency(r);
        longest = alone > longest ? alone : longest;
        latency = l > latency ? l : latency;
        for (uint32_t k = 0; k < r->resources; k++)
            bytes[r->resource[k]] += size;
    }
    *time = longest;
    for (uint32_t k = 0; k < m->resources; k++) {
        gy_ticks t = latency + gy_ticks_of((uint64_t)bytes[k], m->resource[k].rate);
        if (bytes[k] && t > *time)
            *time = t;
    }
    gy_free(bytes);
    return GANTRY_OK;
}

static bool is_one_run(const gy_spans *s)
{
    for (size_t i = 1; i < s->count; i++)
        if (s->at[i].first != s->at[i - 1].last)
            return false;
    return true;
}

static size_t source_memories(const gy_cluster *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->read.count; i++) {
        size_t k = 0;
        while (k < i && c->read.at[k].memory != c->read.at[i].memory)
            k++;
        count += k == i;
    }
    return count;
}

static gantry_collective name_of(const gy_cluster *c)
{
    switch ((gy_cluster_kind)c->kind) {
    case GY_CLUSTER_ONE:
        return (gantry_collective)0;
    case GY_CLUSTER_SAME:
        return c->memory.count >= 3 ? GANTRY_BROADCAST : (gantry_collective)0;
    case GY_CLUSTER_PARTS:
        return c->memory.count >= 3 && is_one_run(&c->read) ? GANTRY_SCATTER : (gantry_collective)0;
    case GY_CLUSTER_MANY:
        break;
    }
    if (source_memories(c) < 3)
        return (gantry_collective)0;
    if (c->memory.count > 1)
        return GANTRY_ALL_GATHER;
    return c->write.count == 1 ? GANTRY_GATHER : (gantry_collective)0;
}

/* All memories of the cluster, each once, those that only give first. */
static uint32_t *all_memories(const gy_cluster *c, uint32_t *count)
{
    uint32_t *memory = gy_calloc(c->read.count + c->memory.count, sizeof *memory);
    *count = 0;
    for (size_t i = 0; memory && i < c->read.count + c->memory.count; i++) {
        uint32_t m = i < c->read.count ? c->read.at[i].memory : c->memory.at[i - c->read.count], k = 0;
        while (k < *count && memory[k] != m)
            k++;
        if (k == *count)
            memory[(*count)++] = m;
    }
    return memory;
}

/* The time of a ring, where there is one; else GY_TICKS_MAX. */
static gantry_status ring(const gy_plan *p, const gy_cluster *c, gantry_collective kind, gy_ticks *time,
                          gantry_error *err)
{
    const gy_buffer *b = gy_value_buffer(p->graph, p->flow, c->value);
    uint32_t count, *memory;
    int64_t largest = 0;
    *time = GY_TICKS_MAX;
    if (kind != GANTRY_BROADCAST && kind != GANTRY_ALL_GATHER)
        return GANTRY_OK;
    memory = all_memories(c, &count);
    if (!memory)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < c->read.count; i++) {
        int64_t bytes = gy_buffer_span(b, c->read.at[i].first, c->read.at[i].last);
        largest = bytes > largest ? bytes : largest;
    }
    *time = gy_collective_time(p, kind, memory, count, kind == GANTRY_BROADCAST ? largest : largest * count);
    gy_free(memory);
    return GANTRY_OK;
}

gantry_status gy_collect_decide(const gy_plan *p, gy_cluster *c, gantry_error *err)
{
    gantry_collective kind = name_of(c);
    gy_ticks direct, around, first = GY_TICKS_MAX, last = 0, end = 0;
    if (!kind)
        return GANTRY_OK;
    gantry_status status = together(p, c, &direct, err);
    if (!status)
        status = ring(p, c, kind, &around, err);
    if (status)
        return status;
    for (size_t i = 0; i < c->copy.count; i++) {
        const gy_draft *d = &p->draft.at[c->copy.at[i]];
        gy_ticks begin = d->end - d->op.duration;
        first = begin < first ? begin : first;
        last = begin > last ? begin : last;
        end = d->end > end ? d->end : end;
    }
    c->duration = around < direct ? around : direct;
    end = first + direct > end ? first + direct : end;
    /* In a tie copies that could begin one after the other stay copies: they leave room for others. */
    if (last + c->duration < end || (last + c->duration == end && first == last))
        c->collective = (uint8_t)kind;
    return GANTRY_OK;
}
