/* SPDX-License-Identifier: Apache-2.0 */
/* Finding clusters: one walk over the draft, with the latest cluster of each value open. */
#include "scheduler/collect.h"

#include "base/error.h"

typedef struct collect {
    gy_plan *p;
    gy_clusters clusters;
    gy_map open;            /* value -> cluster */
    uint32_t *latest;       /* per draft: 1 + the last draft it waits for; 0: none */
    GY_VEC(uint32_t) batch; /* the copies at hand */
} collect;

static gy_span span_of(const gy_plan *p, uint32_t draft, uint32_t use)
{
    const gy_use *u = &p->use.at[p->draft.at[draft].op.use + use];
    return (gy_span){ u->instance, p->instance.at[u->instance].memory, u->first, u->last };
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
    bool known, many = k->batch.count > 1;
    for (size_t i = 0; i < k->batch.count; i++) {
        gy_span next = span_of(k->p, k->batch.at[i], 0);
        if (!find_read(c, &next, &at, &known))
            return false;
    }
    (void)find_read(c, &s, &at, &known);
    if (many || c->kind == GY_CLUSTER_MANY) {
        *kind = GY_CLUSTER_MANY;
        return many && c->kind == GY_CLUSTER_MANY;
    }
    if (s.instance != c->read.at[0].instance)
        return false;
    *kind = known ? GY_CLUSTER_SAME : GY_CLUSTER_PARTS;
    return c->kind == GY_CLUSTER_ONE || c->kind == *kind;
}

/* Could all copies of the batch stand where the cluster's first copy is? */
static bool can_join(const collect *k, const gy_cluster *c, uint8_t *kind)
{
    if (goes_to(c, span_of(k->p, k->batch.at[0], 1).memory))
        return false;
    for (size_t i = 0; i < k->batch.count; i++)
        if (k->latest[k->batch.at[i]] > c->copy.at[0])
            return false;
    return shape_with(k, c, kind);
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
    }
    return gy_vec_push(&c->memory, span_of(k->p, k->batch.at[0], 1).memory);
}

/* false: out of memory */
static bool place_batch(collect *k)
{
    uint32_t value = k->p->instance.at[span_of(k->p, k->batch.at[0], 0).instance].value;
    uint64_t index;
    uint8_t kind = GY_CLUSTER_ONE;
    gy_cluster *old = gy_map_get(&k->open, value, &index) ? &k->clusters.at[index] : NULL;
    if (old && can_join(k, old, &kind)) {
        old->kind = kind;
        return add_batch(k, old);
    }
    kind = k->batch.count > 1 ? GY_CLUSTER_MANY : GY_CLUSTER_ONE;
    if (old && old->kind == GY_CLUSTER_ONE) { /* nothing came of it: most do not */
        old->kind = kind;
        old->copy.count = old->read.count = old->write.count = old->memory.count = 0;
        return add_batch(k, old);
    }
    gy_cluster new = { .value = value, .kind = kind };
    return gy_map_put(&k->open, value, k->clusters.count) && gy_vec_push(&k->clusters, new) &&
           add_batch(k, gy_vec_last(&k->clusters));
}

static bool is_candidate(const gy_plan *p, uint32_t draft)
{
    return p->draft.at[draft].batch && span_of(p, draft, 0).memory != 0 && span_of(p, draft, 1).memory != 0 &&
           span_of(p, draft, 0).memory != span_of(p, draft, 1).memory;
}

/* The candidates of the batch that begins at draft i; returns the draft behind it. */
static bool read_batch(collect *k, uint32_t i, uint32_t *next)
{
    const gy_plan *p = k->p;
    uint32_t batch = p->draft.at[i].batch, first = i;
    k->batch.count = 0;
    for (; i < p->draft.count && (p->draft.at[i].batch == batch || p->draft.at[i].batch == 0); i++) {
        if (p->draft.at[i].op.kind != GY_OP_COPY || p->draft.at[i].op.node != GY_NONE)
            break;
        if (is_candidate(p, i) && k->latest[i] <= first && !gy_vec_push(&k->batch, i))
            return false;
    }
    *next = i > first ? i : i + 1;
    return true;
}

static bool walk(collect *k)
{
    const gy_plan *p = k->p;
    for (size_t e = 0; e < p->edges.count; e++)
        if (p->edges.at[e].from + 1 > k->latest[p->edges.at[e].to])
            k->latest[p->edges.at[e].to] = p->edges.at[e].from + 1;
    for (uint32_t i = 0; i < p->draft.count;) {
        if (!p->draft.at[i].batch) {
            i++;
            continue;
        }
        if (!read_batch(k, i, &i) || (k->batch.count && !place_batch(k)))
            return false;
    }
    return true;
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

gantry_status gy_plan_collect(gy_plan *p, gantry_error *err)
{
    collect k = { .p = p };
    gantry_status status = GANTRY_OK;
    if (!p->machine->contention) /* copies that do not disturb each other cannot be beaten */
        return GANTRY_OK;
    k.latest = gy_calloc(p->draft.count + 1, sizeof *k.latest);
    if (!k.latest || !walk(&k))
        status = gy_fail_nomem(err);
    for (size_t i = 0; i < k.clusters.count && !status; i++)
        status = gy_collect_decide(p, &k.clusters.at[i], err);
    if (!status)
        status = gy_collect_merge(p, &k.clusters, err);
    free_clusters(&k.clusters);
    gy_map_free(&k.open);
    gy_vec_free(&k.batch);
    gy_free(k.latest);
    return status;
}
