/* SPDX-License-Identifier: Apache-2.0 */
/* Finding clusters: one walk over the draft, with the latest clusters of each value open: one of batches of one copy,
 * and one of batches of several. A copy may be in both; the batch of several goes first. */
#include "scheduler/lower/find_collectives.h"

#include "base/error.h"
#include "scheduler/lower/lower.h"
#include <stdlib.h>

typedef struct collect {
    gy_plan *p;
    gy_clusters clusters;
    gy_map open[2];   /* value -> cluster, of batches of one, of several */
    uint32_t *onward; /* per draft to halfway: copies that go on from there, less those of the cluster at hand */
    uint32_t *latest; /* per draft: 1 + the last draft it waits for; 0: none. At the end TAKEN: it is in a collective */
    GY_VEC(uint32_t) batch; /* the copies at hand */
    GY_VEC(uint32_t) run;   /* those of one task */
} collect;

#define TAKEN UINT32_MAX

gy_span gy_copy_span(const gy_plan *p, uint32_t draft, uint32_t use)
{
    const gy_draft_op *d = &p->draft.op.at[draft];
    const gy_use *u = &p->draft.use.at[d->op.use + use];
    gy_span s = { u->instance, 0, u->first, u->last };
    if (!use && d->hop)
        s.instance = p->draft.use.at[p->draft.op.at[d->hop - 1].op.use].instance;
    s.memory = p->draft.instance.at[s.instance].memory;
    return s;
}

static gy_span span_of(const gy_plan *p, uint32_t draft, uint32_t use)
{
    return gy_copy_span(p, draft, use);
}

static bool same_span(const gy_span *a, const gy_span *b)
{
    return a->instance == b->instance && a->first == b->first && a->last == b->last;
}

/* Where in the reads the span belongs; *known: it is there. False if it overlaps another. */
static bool find_read(const gy_cluster *c, const gy_span *s, size_t *at, bool *known)
{
    size_t low = 0, high = c->read.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->read.at[middle].first < s->first)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    *known = low < c->read.count && same_span(&c->read.at[low], s);
    if (*known)
        return true;
    return (low == 0 || c->read.at[low - 1].last <= s->first) &&
           (low == c->read.count || s->last <= c->read.at[low].first);
}

static bool goes_to(const gy_cluster *c, uint32_t memory)
{
    for (size_t i = 0; i < c->memory.count; i++)
        if (c->memory.at[i] == memory)
            return true;
    return false;
}

/* Is this batch of the shape that the cluster has, and which has it then? */
static bool shape_with(const collect *k, const gy_cluster *c, uint8_t *kind)
{
    gy_span s = span_of(k->p, k->batch.at[0], 0);
    size_t at;
    bool known;
    for (size_t i = 0; i < k->batch.count; i++) {
        gy_span next = span_of(k->p, k->batch.at[i], 0);
        if (!find_read(c, &next, &at, &known))
            return false;
    }
    (void)find_read(c, &s, &at, &known);
    if (k->batch.count > 1) {
        *kind = GY_CLUSTER_MANY;
        return true;
    }
    if (s.instance != c->read.at[0].instance)
        return false;
    *kind = known ? GY_CLUSTER_SAME : GY_CLUSTER_PARTS;
    return c->kind == GY_CLUSTER_ONE || c->kind == *kind;
}

static bool can_stand_at(const collect *k, const uint32_t *copy, size_t count, uint32_t place)
{
    for (size_t i = 0; i < count; i++)
        if (k->latest[copy[i]] > place)
            return false;
    return true;
}

/* Could all copies of both stand where the first of them is? Batches of a run come by memory, not by number, so that is
 * not always one of the cluster's. */
static bool can_join(const collect *k, const gy_cluster *c, uint8_t *kind)
{
    uint32_t first = c->copy.at[0];
    if (goes_to(c, span_of(k->p, k->batch.at[0], 1).memory))
        return false;
    if (k->batch.at[0] < first) {
        first = k->batch.at[0];
        if (!can_stand_at(k, c->copy.at, c->copy.count, first))
            return false;
    }
    return can_stand_at(k, k->batch.at, k->batch.count, first) && shape_with(k, c, kind);
}

static bool insert_read(gy_cluster *c, const gy_span *s)
{
    size_t at;
    bool known;
    (void)find_read(c, s, &at, &known);
    if (known)
        return true;
    if (!gy_vec_add(&c->read, 1))
        return false;
    for (size_t i = c->read.count - 1; i > at; i--)
        c->read.at[i] = c->read.at[i - 1];
    c->read.at[at] = *s;
    return true;
}

/* Neighbouring rows of one instance become one write. */
static bool add_write(gy_cluster *c, const gy_span *s)
{
    gy_span *last = c->write.count ? gy_vec_last(&c->write) : NULL;
    if (!last || last->instance != s->instance || last->last != s->first)
        return gy_vec_push(&c->write, *s);
    last->last = s->last;
    return true;
}

static bool add_batch(const collect *k, gy_cluster *c)
{
    for (size_t i = 0; i < k->batch.count; i++) {
        gy_span from = span_of(k->p, k->batch.at[i], 0), to = span_of(k->p, k->batch.at[i], 1);
        if (!insert_read(c, &from) || !add_write(c, &to) || !gy_vec_push(&c->copy, k->batch.at[i]))
            return false;
        uint32_t *first = c->copy.at, *new = gy_vec_last(&c->copy);
        if (*new < *first) { /* the collective takes the place of the first copy */
            *new = *first;
            *first = k->batch.at[i];
        }
    }
    return gy_vec_push(&c->memory, span_of(k->p, k->batch.at[0], 1).memory);
}

/* Nothing can come of it if nothing more joins: most are so. Kinds that have one source have enough readers; those that
 * have several have three, and every reader gets something from all others of them. */
static bool is_hopeless(const gy_plan *p, const gy_cluster *c)
{
    if (c->kind != GY_CLUSTER_MANY)
        return !gy_cluster_has_readers(p, c);
    size_t sources = c->read.count < 3 ? 0 : gy_cluster_sources(c);
    return sources < 3 || c->copy.count < c->memory.count * (sources - 1);
}

/* false: out of memory */
static bool place_batch(collect *k)
{
    uint32_t value = k->p->draft.instance.at[span_of(k->p, k->batch.at[0], 0).instance].value;
    uint64_t index;
    uint8_t kind = GY_CLUSTER_ONE;
    gy_map *open = &k->open[k->batch.count > 1];
    gy_cluster *old = gy_map_get(open, value, &index) ? &k->clusters.at[index] : NULL;
    if (old && can_join(k, old, &kind)) {
        old->kind = kind;
        return add_batch(k, old);
    }
    kind = k->batch.count > 1 ? GY_CLUSTER_MANY : GY_CLUSTER_ONE;
    if (old && is_hopeless(k->p, old)) {
        old->kind = kind;
        old->copy.count = old->read.count = old->write.count = old->memory.count = 0;
        return add_batch(k, old);
    }
    gy_cluster new = { .value = value, .kind = kind };
    return gy_map_put(open, value, k->clusters.count) && gy_vec_push(&k->clusters, new) &&
           add_batch(k, gy_vec_last(&k->clusters));
}

static bool is_within_memory(const gy_plan *p, uint32_t draft)
{
    return span_of(p, draft, 0).memory == span_of(p, draft, 1).memory;
}

/* Own rows that are gathered with those of others are part of the collective, else it would leave a gap. */
static bool is_candidate(const gy_plan *p, uint32_t draft)
{
    uint32_t from = span_of(p, draft, 0).memory, to = span_of(p, draft, 1).memory;
    bool devices = gy_plan_device_of(p, from) != GY_NONE && gy_plan_device_of(p, to) != GY_NONE;
    return p->draft.op.at[draft].batch && from != 0 && to != 0 && devices &&
           (p->attempt->spill.gather_again || !is_within_memory(p, draft));
}

/* By value, then by where it goes, then by number. */
static int compare_copies(const gy_plan *p, uint32_t a, uint32_t b)
{
    gy_span x = span_of(p, a, 1), y = span_of(p, b, 1);
    uint32_t v = p->draft.instance.at[x.instance].value, w = p->draft.instance.at[y.instance].value;
    if (v != w)
        return v < w ? -1 : 1;
    if (x.memory != y.memory)
        return x.memory < y.memory ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int by_value(const void *a, const void *b, void *context)
{
    return compare_copies(context, *(const uint32_t *)a, *(const uint32_t *)b);
}

static bool goes_with(const gy_plan *p, uint32_t a, uint32_t b)
{
    gy_span x = span_of(p, a, 1), y = span_of(p, b, 1);
    return x.memory == y.memory && p->draft.instance.at[x.instance].value == p->draft.instance.at[y.instance].value;
}

static void sort_run(collect *k)
{
    uint32_t *at = k->run.at;
    if (k->run.count > 2) {
        qsort_r(at, k->run.count, sizeof *at, by_value, k->p);
    } else if (compare_copies(k->p, at[0], at[1]) > 0) {
        uint32_t swap = at[0];
        at[0] = at[1];
        at[1] = swap;
    }
}

/* The batches of several copies among those of a task, from several places. None waits for another of its batch. */
static bool place_several(collect *k)
{
    size_t n = k->run.count;
    sort_run(k);
    for (size_t i = 0, next; i < n; i = next) {
        bool places = false;
        k->batch.count = 0;
        for (next = i; next < n && goes_with(k->p, k->run.at[i], k->run.at[next]); next++) {
            uint32_t copy = k->run.at[next];
            places = places || span_of(k->p, copy, 0).memory != span_of(k->p, k->run.at[i], 0).memory;
            if (k->latest[copy] <= k->run.at[i] && !gy_vec_push(&k->batch, copy))
                return false;
        }
        if (places && k->batch.count > 1 && !place_batch(k))
            return false;
    }
    return true;
}

/* Copies of one access that brought all rows from one place. */
static bool place_singles(collect *k)
{
    const gy_plan *p = k->p;
    for (size_t i = 0, next; i < k->run.count; i = next) {
        next = i + 1;
        while (next < k->run.count && p->draft.op.at[k->run.at[next]].batch == p->draft.op.at[k->run.at[i]].batch)
            next++;
        k->batch.count = 0;
        bool alone = next == i + 1 && !is_within_memory(p, k->run.at[i]);
        if (alone && (!gy_vec_push(&k->batch, k->run.at[i]) || !place_batch(k)))
            return false;
    }
    return true;
}

/* The copies from draft i on up to an op that is none; *next: that op. */
static bool read_run(collect *k, uint32_t i, uint32_t *next)
{
    const gy_plan *p = k->p;
    k->run.count = 0;
    for (; i < p->draft.op.count && p->draft.op.at[i].op.kind == GY_OP_COPY && p->draft.op.at[i].op.node == GY_NONE;
         i++)
        if (is_candidate(p, i) && !gy_vec_push(&k->run, i))
            return false;
    *next = i;
    return true;
}

/* Copies that go on from where others brought their rows are of no collective, but had their source been another they
 * might be. */
static bool is_chained(const gy_plan *p, const gy_edge *edge)
{
    const gy_draft_op *to = &p->draft.op.at[edge->to];
    return edge->reason == GY_WHY_DATA && to->batch && p->draft.op.at[edge->from].batch &&
           is_candidate(p, edge->from) && is_candidate(p, edge->to);
}

/* Finds the copies that go on from halfway: `brought` has 1 + the copy that came there, for each instance halfway. */
static void note_hops(collect *k, uint32_t *brought)
{
    gy_draft *d = &k->p->draft;
    for (uint32_t i = 0; i < d->op.count; i++) {
        const gy_op *op = &d->op.at[i].op;
        for (uint32_t u = 0; u < op->uses; u++) {
            uint32_t by = brought[d->use.at[op->use + u].instance];
            k->onward[by ? by - 1 : 0] += by > 0;
            d->op.at[i].hop = by && d->op.at[i].batch && !u ? by : d->op.at[i].hop;
        }
        if (d->op.at[i].halfway)
            brought[d->use.at[op->use + 1].instance] = i + 1;
    }
}

static bool find_hops(collect *k)
{
    uint32_t *brought = gy_calloc(k->p->draft.instance.count + 1, sizeof *brought);
    if (brought)
        note_hops(k, brought);
    gy_free(brought);
    return brought;
}

static void note_edges(collect *k)
{
    gy_plan *p = k->p;
    for (size_t e = 0; e < p->draft.edges.count; e++) {
        const gy_edge *edge = &p->draft.edges.at[e];
        if (edge->from + 1 > k->latest[edge->to] && p->draft.op.at[edge->to].hop != edge->from + 1)
            k->latest[edge->to] = edge->from + 1;
        if (!p->passed_over)
            p->passed_over = is_chained(p, edge);
    }
    for (uint32_t i = 0; i < p->draft.op.count; i++) {
        uint32_t hop = p->draft.op.at[i].hop;
        if (hop && k->latest[hop - 1] > k->latest[i])
            k->latest[i] = k->latest[hop - 1];
    }
}

static bool walk(collect *k)
{
    const gy_plan *p = k->p;
    note_edges(k);
    for (uint32_t i = 0; i < p->draft.op.count; i++) {
        if (!p->draft.op.at[i].batch)
            continue;
        if (!read_run(k, i, &i) || !place_singles(k) || (k->run.count > 1 && !place_several(k)))
            return false;
    }
    return true;
}

static bool is_taken(const collect *k, const gy_cluster *c)
{
    for (size_t i = 0; i < c->copy.count; i++)
        if (k->latest[c->copy.at[i]] == TAKEN)
            return true;
    return false;
}

/* Is what its copies go on from halfway for nobody else? */
static bool is_whole(collect *k, const gy_cluster *c)
{
    const gy_plan *p = k->p;
    bool whole = true, hops = false;
    for (size_t i = 0; i < c->copy.count; i++)
        if (p->draft.op.at[c->copy.at[i]].hop)
            k->onward[p->draft.op.at[c->copy.at[i]].hop - 1]--;
    for (size_t i = 0; i < c->copy.count; i++)
        whole = whole && (!p->draft.op.at[c->copy.at[i]].hop || !k->onward[p->draft.op.at[c->copy.at[i]].hop - 1]);
    for (size_t i = 0; i < c->copy.count; i++)
        if (p->draft.op.at[c->copy.at[i]].hop)
            k->onward[p->draft.op.at[c->copy.at[i]].hop - 1]++;
    for (size_t i = 0; i < c->copy.count; i++)
        hops = hops || p->draft.op.at[c->copy.at[i]].hop;
    k->p->hops = k->p->hops || hops;
    return whole && !(hops && p->attempt->keep_hops);
}

static gantry_status decide(collect *k, bool several, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < k->clusters.count && !status; i++) {
        gy_cluster *c = &k->clusters.at[i];
        if ((c->kind == GY_CLUSTER_MANY) != several || is_taken(k, c) || !is_whole(k, c))
            continue;
        status = gy_cluster_decide(k->p, c, err);
        k->p->passed_over += c->way.time > 0 && !c->collective;
        for (size_t n = 0; n < c->copy.count && c->collective; n++)
            k->latest[c->copy.at[n]] = TAKEN;
    }
    return status;
}

static void free_clusters(gy_clusters *clusters)
{
    for (size_t i = 0; i < clusters->count; i++) {
        gy_cluster *c = &clusters->at[i];
        gy_vec_free(&c->copy);
        gy_vec_free(&c->read);
        gy_vec_free(&c->write);
        gy_vec_free(&c->memory);
    }
    gy_vec_free(clusters);
}

gantry_status gy_plan_find_collectives(gy_plan *p, gantry_error *err)
{
    collect k = { .p = p };
    gantry_status status = GANTRY_OK;
    p->collectives = p->passed_over = 0;
    p->hops = false;
    if (p->attempt->keep_copies || !p->machine->contention) /* copies that do not disturb each other cannot be beaten */
        return GANTRY_OK;
    k.latest = gy_calloc(p->draft.op.count + 1, sizeof *k.latest);
    k.onward = gy_calloc(p->draft.op.count + 1, sizeof *k.onward);
    if (!k.latest || !k.onward || !find_hops(&k) || !walk(&k))
        status = gy_fail_nomem(err);
    if (!status)
        status = decide(&k, true, err);
    if (!status)
        status = decide(&k, false, err);
    if (!status)
        status = gy_clusters_merge(p, &k.clusters, err);
    free_clusters(&k.clusters);
    gy_map_free(&k.open[0]);
    gy_map_free(&k.open[1]);
    gy_vec_free(&k.batch);
    gy_vec_free(&k.run);
    gy_free(k.latest);
    gy_free(k.onward);
    return status;
}
