/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The kind of collective that a cluster is, and whether it is as fast as its copies. Copies that go at the same time
 * need at least the time of the slowest, what the busiest resource (link, port, bus) needs for all bytes that cross it,
 * and what the engines of each device need: never more than the simulator finds for them. The collective is as fast as
 * the best algorithm, but begins only when all of its copies could have begun.
 */
#include "scheduler/lower/find_collectives.h"

#include "base/error.h"

enum { PREFERRED_UP_TO = 4 };

size_t gy_cluster_sources(const gy_cluster *c)
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

static bool takes(const gy_cluster *c, uint32_t memory)
{
    for (size_t i = 0; i < c->memory.count; i++)
        if (c->memory.at[i] == memory)
            return true;
    return false;
}

/* The memories of a copy, where it goes on through another one those of the whole way. */
static void ends_of(const gy_plan *p, uint32_t copy, uint32_t *from, uint32_t *to)
{
    *from = gy_copy_span(p, copy, 0).memory;
    *to = gy_copy_span(p, copy, 1).memory;
}

/* How many copies go from one memory to another. */
static size_t copies_across(const gy_plan *p, const gy_cluster *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->copy.count; i++) {
        uint32_t from, to;
        ends_of(p, c->copy.at[i], &from, &to);
        count += from != to;
    }
    return count;
}

/* All rows go to all that take and do not have them. */
static bool is_all_gather(const gy_plan *p, const gy_cluster *c)
{
    size_t copies = 0;
    for (size_t i = 0; i < c->read.count; i++)
        copies += c->memory.count - takes(c, c->read.at[i].memory);
    return copies_across(p, c) == copies;
}

/* Is there a copy from each that takes to each other? */
static bool joins_all(const gy_plan *p, const gy_cluster *c, uint8_t *joined)
{
    size_t n = c->memory.count, pairs = 0;
    for (size_t i = 0; i < c->copy.count; i++) {
        uint32_t from, to;
        size_t a = 0, b = 0;
        ends_of(p, c->copy.at[i], &from, &to);
        while (a < n && c->memory.at[a] != from)
            a++;
        while (b < n && c->memory.at[b] != to)
            b++;
        if (a == n)
            return false;
        pairs += a != b && !joined[a * n + b];
        joined[a * n + b] = 1;
    }
    return pairs == n * (n - 1);
}

static gantry_status name_many(const gy_plan *p, const gy_cluster *c, gantry_collective *kind, gantry_error *err)
{
    *kind = (gantry_collective)0;
    if (gy_cluster_sources(c) < 3)
        return GANTRY_OK;
    if (c->memory.count == 1) {
        *kind = GANTRY_GATHER;
        return GANTRY_OK;
    }
    if (is_all_gather(p, c)) {
        *kind = GANTRY_ALL_GATHER;
        return GANTRY_OK;
    }
    if (c->memory.count < 3 || c->read.count != c->copy.count)
        return GANTRY_OK;
    uint8_t *joined = gy_calloc(c->memory.count * c->memory.count, 1);
    if (!joined)
        return gy_fail_nomem(err);
    *kind = joins_all(p, c, joined) ? GANTRY_ALL_TO_ALL : *kind;
    gy_free(joined);
    return GANTRY_OK;
}

bool gy_cluster_has_readers(const gy_plan *p, const gy_cluster *c)
{
    bool onward = false;
    for (size_t i = 0; i < c->copy.count; i++)
        onward = onward || p->draft.op.at[c->copy.at[i]].hop;
    return c->memory.count >= (onward ? 2 : 3);
}

static gantry_status name_of(const gy_plan *p, const gy_cluster *c, gantry_collective *kind, gantry_error *err)
{
    *kind = (gantry_collective)0;
    switch ((gy_cluster_kind)c->kind) {
    case GY_CLUSTER_ONE:
        break;
    case GY_CLUSTER_SAME:
        *kind = gy_cluster_has_readers(p, c) ? GANTRY_BROADCAST : *kind;
        break;
    case GY_CLUSTER_PARTS:
        *kind = gy_cluster_has_readers(p, c) ? GANTRY_SCATTER : *kind;
        break;
    case GY_CLUSTER_MANY:
        return name_many(p, c, kind, err);
    }
    return GANTRY_OK;
}

/* ---- time ---- */

static bool make_group(const gy_plan *p, const gy_cluster *c, gantry_collective kind, gy_group *g)
{
    const gy_buffer *b = gy_value_buffer(p->graph, p->flow, c->value);
    size_t ins = c->read.count, count = ins + c->write.count;
    gy_group_span *span = gy_calloc(count, sizeof *span);
    for (size_t i = 0; span && i < count; i++) {
        const gy_span *s = i < ins ? &c->read.at[i] : &c->write.at[i - ins];
        span[i] =
            (gy_group_span){ s->memory, s->instance, gy_buffer_offset(b, s->first), gy_buffer_offset(b, s->last) };
    }
    bool done = span && gy_group_of_rows(g, kind, 0, span, (uint32_t)ins, (uint32_t)(count - ins));
    gy_free(span);
    return done;
}

/* The copies all at once. */
static gy_ticks together(const gy_plan *p, const gy_cluster *c, const gy_group *g)
{
    const gy_buffer *b = gy_value_buffer(p->graph, p->flow, c->value);
    p->net->lenient = true;
    for (size_t i = 0; i < c->copy.count; i++) {
        gy_span s = gy_copy_span(p, c->copy.at[i], 0);
        uint32_t from, to;
        ends_of(p, c->copy.at[i], &from, &to);
        if (from != to)
            gy_net_add(p->net, g, gy_group_rank(g, from), gy_group_rank(g, to), gy_buffer_span(b, s.first, s.last));
    }
    p->net->lenient = false;
    return gy_net_copies(p->net);
}

/* The host gives copies between GPUs out one after the other, so the last begins after so many. */
static gy_ticks end_as_given(const gy_plan *p, const gy_cluster *c)
{
    gy_ticks least = GY_TICKS_MAX;
    for (size_t i = 0; i < c->copy.count; i++) {
        gy_ticks alone = p->draft.op.at[c->copy.at[i]].op.duration;
        least = alone < least ? alone : least;
    }
    return gy_ticks_sum(gy_ticks_times(p->machine->issue, (int64_t)c->copy.count), least);
}

/* When the copies can begin, and end at best. That is seldom reached, as copies come in each other's way: who prefers
 * collectives takes them up to so many times as long, and has simulation decide. */
static void compare(const gy_plan *p, gy_cluster *c, gantry_collective kind, gy_ticks direct)
{
    gy_ticks first = GY_TICKS_MAX, last = 0, end = p->machine->issue ? end_as_given(p, c) : 0;
    for (size_t i = 0; i < c->copy.count; i++) {
        const gy_draft_op *d = &p->draft.op.at[c->copy.at[i]];
        gy_ticks begin = d->end - d->op.duration - (d->hop ? p->draft.op.at[d->hop - 1].op.duration : 0);
        first = begin < first ? begin : first;
        last = begin > last ? begin : last;
        end = d->end > end ? d->end : end;
    }
    end = first + direct > end ? first + direct : end;
    /* In a tie copies that could begin one after the other stay copies: they leave room for others. */
    if (last + c->way.time < end || (last + c->way.time == end && first == last))
        c->collective = (uint8_t)kind;
    if (p->attempt->prefer_collectives && last + c->way.time - first < gy_ticks_times(end - first, PREFERRED_UP_TO))
        c->collective = (uint8_t)kind;
}

gantry_status gy_cluster_decide(const gy_plan *p, gy_cluster *c, gantry_error *err)
{
    gantry_collective kind;
    gy_group g;
    gantry_status status = name_of(p, c, &kind, err);
    if (status || !kind)
        return status;
    if (!make_group(p, c, kind, &g))
        return gy_fail_nomem(err);
    if (gy_collective_choose(p->net, &g, &c->way))
        compare(p, c, kind, together(p, c, &g));
    else
        status = gy_fail_nomem(err);
    gy_group_free(&g);
    return status;
}
