/* SPDX-License-Identifier: Apache-2.0 */
/* Checking collectives: how many regions of what size each kind takes. Sizes are elements; p ranks. */
#include "base/error.h"
#include "graph/check/check.h"

typedef struct shape_rule {
    bool reduces, rooted, one_in, one_out;
    enum { SAME, OUTS_ADD_UP, INS_ADD_UP, EACH_OUT_ALL_INS, EACH_IN_ALL_OUTS } sizes;
} shape_rule;

static const shape_rule RULES[] = {
    [GANTRY_ALL_REDUCE] = { true, false, false, false, SAME },
    [GANTRY_REDUCE] = { true, true, false, true, SAME },
    [GANTRY_BROADCAST] = { false, true, true, false, SAME },
    [GANTRY_SCATTER] = { false, true, true, false, OUTS_ADD_UP },
    [GANTRY_GATHER] = { false, true, false, true, INS_ADD_UP },
    [GANTRY_ALL_GATHER] = { false, false, false, false, EACH_OUT_ALL_INS },
    [GANTRY_REDUCE_SCATTER] = { true, false, false, false, EACH_IN_ALL_OUTS },
    [GANTRY_ALL_TO_ALL] = { false, false, false, false, SAME },
};

/* One collective being checked. */
typedef struct subject {
    const gantry_graph *g;
    const gy_node *n;
    const gy_node_extra *e;
    const gy_access *in, *out;
    const char *kind;
    uint32_t ranks;
} subject;

static int64_t elements(const subject *s, const gy_access *a)
{
    return gy_access_bytes(s->g, a) / (int64_t)gantry_dtype_size(s->g->buffers.at[a->buffer].dtype);
}

static int64_t sum(const subject *s, const gy_access *at, uint32_t count)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += elements(s, &at[i]);
    return total;
}

static gantry_status check_counts(const subject *s, const shape_rule *rule, gantry_error *err)
{
    uint32_t ins = rule->one_in ? 1 : s->ranks, outs = rule->one_out ? 1 : s->ranks;
    if (s->ranks > 0 && s->e->ins == ins && s->e->outs == outs)
        return GANTRY_OK;
    return gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH,
                         "%s \"%s\" has %u regions in and %u out; it takes %s in and %s out", s->kind, s->n->id,
                         s->e->ins, s->e->outs, rule->one_in ? "one" : "one a rank",
                         rule->one_out  ? "one"
                         : rule->one_in ? "one a rank"
                                        : "as many");
}

static gantry_status check_op(const subject *s, const shape_rule *rule, gantry_error *err)
{
    bool is_reduction = s->e->op >= GANTRY_SUM && s->e->op <= GANTRY_PROD;
    if (rule->reduces ? !is_reduction : s->e->op != 0) {
        return gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH, "%s \"%s\" has op %d; it takes %s", s->kind,
                             s->n->id, (int)s->e->op, rule->reduces ? "GANTRY_SUM, MIN, MAX or PROD" : "none: pass 0");
    }
    if (rule->rooted ? s->e->root < 0 || s->e->root >= (int64_t)s->ranks : s->e->root != 0) {
        return gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH, "%s \"%s\" has root %d; %s%u", s->kind, s->n->id,
                             (int)s->e->root, rule->rooted ? "ranks are 0 to " : "it has no root: pass ",
                             rule->rooted ? s->ranks - 1 : 0);
    }
    return GANTRY_OK;
}

static gantry_status check_dtypes(const subject *s, gantry_error *err)
{
    const gy_buffer *first = &s->g->buffers.at[s->in[0].buffer];
    if (s->e->op != 0 && gy_dtype_is_f8(first->dtype)) {
        return gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH,
                             "%s \"%s\" reduces \"%s\", which is %s; nothing is reduced in 8 bits: reduce f32 or bf16",
                             s->kind, s->n->id, first->name, gantry_dtype_name(first->dtype));
    }
    for (uint32_t i = 1; i < s->n->accesses; i++) {
        const gy_buffer *b = &s->g->buffers.at[s->in[i].buffer];
        if (b->dtype != first->dtype) {
            return gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH,
                                 "%s \"%s\" joins \"%s\" (%s) and \"%s\" (%s); all must have the same dtype", s->kind,
                                 s->n->id, first->name, gantry_dtype_name(first->dtype), b->name,
                                 gantry_dtype_name(b->dtype));
        }
    }
    return GANTRY_OK;
}

/* Every region of the list has `size` elements. */
static gantry_status check_each(const subject *s, const gy_access *at, uint32_t count, int64_t size, const char *why,
                                gantry_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (elements(s, &at[i]) == size)
            continue;
        gy_text text = { 0 };
        gy_access_text(&text, s->g, &at[i]);
        gantry_status status =
            text.failed ? gy_fail_nomem(err)
                        : gy_graph_fail(s->g, s->n->origin, err, GANTRY_E_GRAPH,
                                        "%s \"%s\": %s has %lld elements and should have %lld, %s", s->kind, s->n->id,
                                        text.at, (long long)elements(s, &at[i]), (long long)size, why);
        gy_text_free(&text);
        return status;
    }
    return GANTRY_OK;
}

static gantry_status check_sizes(const subject *s, const shape_rule *rule, gantry_error *err)
{
    const gy_node_extra *e = s->e;
    switch (rule->sizes) {
    case OUTS_ADD_UP:
        return check_each(s, s->in, 1, sum(s, s->out, e->outs), "as many as all regions out together", err);
    case INS_ADD_UP:
        return check_each(s, s->out, 1, sum(s, s->in, e->ins), "as many as all regions in together", err);
    case EACH_OUT_ALL_INS:
        return check_each(s, s->out, e->outs, sum(s, s->in, e->ins), "as many as all regions in together", err);
    case EACH_IN_ALL_OUTS:
        return check_each(s, s->in, e->ins, sum(s, s->out, e->outs), "as many as all regions out together", err);
    case SAME:
        break;
    }
    return check_each(s, s->in, s->n->accesses, elements(s, s->in), "as many as the first", err);
}

/* `on` as a list has a place for each rank. */
static gantry_status check_ranks(const subject *s, gantry_error *err)
{
    if (!s->e->rank_on.count || s->e->rank_on.count == s->ranks)
        return GANTRY_OK;
    return gy_graph_fail_in(s->g, s->n->origin, "/on", err, GANTRY_E_GRAPH,
                            "%s \"%s\" has %u ranks, and `on` places for %zu; give one for each rank", s->kind,
                            s->n->id, s->ranks, s->e->rank_on.count);
}

gantry_status gy_check_collective(const gantry_graph *graph, const gy_node *node, gantry_error *err)
{
    const gy_node_extra *e = &graph->extra.at[node->extra];
    const shape_rule *rule = &RULES[e->collective];
    const gy_access *in = gy_vec_from(&graph->access, node->access);
    subject s = { graph,
                  node,
                  e,
                  in,
                  in ? in + e->ins : NULL,
                  gantry_collective_name(e->collective),
                  rule->one_in ? e->outs : e->ins };
    gantry_status status = check_counts(&s, rule, err);
    if (!status)
        status = check_ranks(&s, err);
    if (!status)
        status = check_op(&s, rule, err);
    if (!status)
        status = check_dtypes(&s, err);
    if (!status)
        status = check_sizes(&s, rule, err);
    if (!status && e->collective == GANTRY_ALL_TO_ALL && elements(&s, in) % s.ranks != 0) {
        status =
            gy_graph_fail(graph, node->origin, err, GANTRY_E_GRAPH,
                          "all_to_all \"%s\" sends %lld elements a rank, which %u ranks do not divide; give each rank "
                          "a multiple of %u, or take other ranks",
                          node->id, (long long)elements(&s, in), s.ranks, s.ranks);
    }
    return status;
}
