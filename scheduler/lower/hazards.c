/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Instances, ops, uses, and the dependencies between ops that follow from what they do to the bytes of instances. Each
 * run of rows of an instance has its last writer and the readers since; a read follows the writer, a write follows the
 * readers, or the writer if there are none.
 */
#include "scheduler/lower/lowering.h"

#include "base/error.h"

/* Readers since the last write, newest first; the oldest mark has the writer alone. Shared between intervals. */
typedef struct gy_mark {
    uint32_t reader, writer; /* GY_NONE: nobody */
    const struct gy_mark *next;
} gy_mark;

gantry_status gy_lower_instance(gy_lower *l, const gy_instance *instance, uint32_t *id, gantry_error *err)
{
    gy_plan *p = l->p;
    const gy_buffer *b = gy_lower_buffer(l, instance->value);
    gy_instance in = *instance;
    gy_hazards none = { 0 };
    in.bytes = (uint64_t)gy_buffer_span(b, in.first, in.last);
    if (p->draft.instance.count >= GY_NONE - 1 || !gy_vec_push(&l->hazards, none) ||
        !gy_vec_push(&p->draft.instance, in))
        return gy_fail_nomem(err);
    *id = (uint32_t)(p->draft.instance.count - 1);
    return GANTRY_OK;
}

gantry_status gy_lower_area(gy_lower *l, uint32_t area, uint32_t *instance, gantry_error *err)
{
    gy_area *a = &l->area.at[area];
    gy_instance in = { .value = a->value, .memory = a->memory, .role = a->role, .first = a->first, .last = a->last };
    gantry_status status = a->instance == GY_NONE ? gy_lower_instance(l, &in, &a->instance, err) : GANTRY_OK;
    if (!status)
        *instance = a->instance;
    return status;
}

void gy_hazards_free(gy_lower *l)
{
    for (size_t i = 0; i < l->hazards.count; i++)
        if (l->hazards.at[i].intervals)
            gy_imap_free(l->hazards.at[i].intervals);
    gy_vec_free(&l->hazards);
    gy_arena_free(&l->arena);
}

enum { EDGES_PER_USE = 4 }; /* for each op that is allowed */

static int64_t most_ops(const gy_plan *p)
{
    int64_t most = gy_graph_most_uses(p->graph, p->flow->tasks);
    return most < INT64_MAX / EDGES_PER_USE ? most : INT64_MAX / EDGES_PER_USE;
}

static gantry_status refuse_size(const gy_lower *l, int64_t most, const char *what, gantry_error *err)
{
    return gy_fail(
        err, GANTRY_E_GRAPH, NULL,
        "a schedule of graph \"%s\" has more than %lld %s, the limit of a graph; copy fewer and larger pieces, "
        "let fewer nodes use rows that many others use, or raise the limit (--limits)",
        l->p->graph->name, (long long)most, what);
}

gantry_status gy_lower_op(gy_lower *l, const gy_draft_op *draft, uint32_t *id, gantry_error *err)
{
    gy_plan *p = l->p;
    gy_draft_op d = *draft;
    d.op.use = (uint32_t)p->draft.use.count;
    d.op.uses = 0;
    if ((int64_t)p->draft.op.count >= most_ops(p))
        return refuse_size(l, most_ops(p), "ops", err);
    if (p->draft.op.count >= GY_NONE - 1 || !gy_vec_push(&p->draft.op, d))
        return gy_fail_nomem(err);
    if (id)
        *id = (uint32_t)(p->draft.op.count - 1);
    return GANTRY_OK;
}

gantry_status gy_lower_edge(gy_lower *l, uint32_t from, uint8_t reason, gantry_error *err)
{
    gy_plan *p = l->p;
    uint32_t to = (uint32_t)(p->draft.op.count - 1);
    const gy_edge *last = p->draft.edges.count ? gy_vec_last(&p->draft.edges) : NULL;
    if (from == GY_NONE || from == to || (last && last->to == to && last->from == from && last->reason == reason))
        return GANTRY_OK;
    gy_edge e = { from, to, reason };
    if ((int64_t)p->draft.edges.count >= EDGES_PER_USE * most_ops(p))
        return refuse_size(l, EDGES_PER_USE * most_ops(p), "dependencies between ops", err);
    return gy_vec_push(&p->draft.edges, e) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status after_writer(gy_lower *l, const gy_mark *m, bool reads, gantry_error *err)
{
    if (!m || m->writer == GY_NONE)
        return GANTRY_OK;
    return gy_lower_edge(l, m->writer, reads ? GY_WHY_DATA : GY_WHY_ORDER, err);
}

static gantry_status after_readers(gy_lower *l, const gy_mark *m, gantry_error *err)
{
    for (; m && m->reader != GY_NONE; m = m->next)
        GY_TRY(gy_lower_edge(l, m->reader, GY_WHY_ORDER, err));
    return GANTRY_OK;
}

static gy_mark *new_mark(gy_lower *l, uint32_t reader, uint32_t writer, const gy_mark *next)
{
    gy_mark *m = gy_arena_alloc(&l->arena, sizeof *m);
    if (m)
        *m = (gy_mark){ reader, writer, next };
    return m;
}

/* Adds the dependencies of the last op on rows that share the past *mark, and makes it part of that past. */
static gantry_status see_rows(gy_lower *l, const gy_mark **mark, uint8_t mode, gantry_error *err)
{
    const gy_mark *old = *mark;
    uint32_t self = (uint32_t)(l->p->draft.op.count - 1);
    gantry_status status = GANTRY_OK;
    if (mode == GANTRY_READ) {
        status = after_writer(l, old, true, err);
        *mark = new_mark(l, self, old ? old->writer : GY_NONE, old && old->reader != GY_NONE ? old : NULL);
        return status ? status : *mark ? GANTRY_OK : gy_fail_nomem(err);
    }
    if (old && old->reader != GY_NONE)
        status = after_readers(l, old, err);
    if (!status && (mode != GANTRY_WRITE || !old || old->reader == GY_NONE))
        status = after_writer(l, old, mode != GANTRY_WRITE, err);
    *mark = new_mark(l, GY_NONE, self, NULL);
    return status ? status : *mark ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status see_intervals(gy_lower *l, uint32_t instance, uint8_t mode, int64_t first, int64_t last,
                                   gantry_error *err)
{
    const gy_instance *in = &l->p->draft.instance.at[instance];
    gy_hazards *h = &l->hazards.at[instance];
    if (!h->intervals) {
        gy_imap *map = gy_arena_alloc(&l->arena, sizeof *map);
        if (!map || !gy_imap_init(map, in->first, in->last, (uintptr_t)h->whole))
            return gy_fail_nomem(err);
        h->intervals = map;
    }
    gy_imap *map = h->intervals;
    uint32_t i = gy_imap_cut(map, first, last);
    gantry_status status = i == GY_IMAP_NONE ? gy_fail_nomem(err) : GANTRY_OK;
    for (; i != GY_IMAP_NONE && map->at[i].first < last && !status; i = gy_imap_next(map, i)) {
        const gy_mark *mark = (const gy_mark *)(uintptr_t)map->at[i].payload;
        status = see_rows(l, &mark, mode, err);
        map->at[i].payload = (uintptr_t)mark;
    }
    return status;
}

/* Contents that never change need no dependencies. */
static bool is_fixed(const gy_lower *l, const gy_instance *in)
{
    return in->space == GY_SPACE_INPUT ||
           (in->role == GY_ROLE_PERSIST && gy_lower_buffer(l, in->value)->cls == GANTRY_CONST);
}

gantry_status gy_lower_use(gy_lower *l, uint32_t instance, uint8_t mode, uint32_t rank, int64_t first, int64_t last,
                           gantry_error *err)
{
    gy_plan *p = l->p;
    gy_use u = { instance, mode, (uint16_t)rank, first, last };
    if (!gy_vec_push(&p->draft.use, u))
        return gy_fail_nomem(err);
    gy_vec_last(&p->draft.op)->op.uses++;
    const gy_instance *in = &p->draft.instance.at[instance];
    gy_hazards *h = &l->hazards.at[instance];
    if (first >= last || is_fixed(l, in))
        return GANTRY_OK;
    return !h->intervals && first == in->first && last == in->last ? see_rows(l, &h->whole, mode, err)
                                                                   : see_intervals(l, instance, mode, first, last, err);
}
