/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes what each read of the sequential program would see: the accesses of all tasks are executed once, in adding
 * order, on one interval map per value. Nothing here looks at dependencies or at the schedule.
 */
#include "base/error.h"
#include "graph/nest.h"
#include "graph/phase.h"
#include "schedule/check/check.h"

gantry_dtype gy_value_dtype(const gy_check *k, uint32_t value)
{
    return gy_value_buffer(k->graph, k->flow, value)->dtype;
}

/* The map of a value; of one that nothing has touched yet: what its name stands for when a start begins. */
static gy_imap *map_of(gy_check *k, uint32_t value)
{
    gy_imap *map = &k->expect.value[value];
    if (map->at)
        return map;
    const gy_value *v = &k->flow->value[value];
    const gy_buffer *b = &k->graph->buffers.at[v->buffer];
    if (!gy_imap_init(map, 0, b->rows, GY_UNKNOWN))
        return NULL;
    gy_rows rows;
    for (uint32_t run = 0; k->flow->entry[v->buffer] == value && gy_graph_entry_rows(k->graph, v->buffer, run, &rows) &&
                           rows.first < rows.last;
         run++) {
        uint32_t i = gy_imap_cut(map, rows.first, rows.last);
        if (i == GY_IMAP_NONE)
            return NULL;
        map->at[i].payload = gy_content_entry(&k->contents, v->buffer);
    }
    return map;
}

gy_content_id gy_content_written(gy_check *k, uint32_t node, size_t access)
{
    if (k->graph->nodes.at[node].kind == GY_NODE_FILL) {
        for (gantry_access op = GANTRY_SUM; op <= GANTRY_PROD; op = (gantry_access)(op + 1))
            if (gy_fill_is_identity(k->graph, node, op))
                return gy_content_identity(&k->contents, gy_value_dtype(k, k->flow->access[access].value), op);
    }
    return gy_content_write(&k->contents, access);
}

static gantry_status read_rows(gy_check *k, uint32_t value, int64_t first, int64_t last, gy_runs *to)
{
    const gy_imap *map = map_of(k, value);
    if (!map)
        return gy_fail_nomem(k->err);
    for (uint32_t i = gy_imap_find(map, first); i != GY_IMAP_NONE && map->at[i].first < last;
         i = gy_imap_next(map, i)) {
        gy_expected run = { map->at[i].first > first ? map->at[i].first : first,
                            map->at[i].last < last ? map->at[i].last : last, (gy_content_id)map->at[i].payload };
        if (!gy_vec_push(to, run))
            return gy_fail_nomem(k->err);
    }
    return GANTRY_OK;
}

static gantry_status write_rows(gy_check *k, uint32_t value, const gy_access *a, gy_content_id content, size_t access)
{
    gy_imap *map = map_of(k, value);
    uint32_t i = map ? gy_imap_cut(map, a->first, a->last) : GY_IMAP_NONE;
    if (i == GY_IMAP_NONE)
        return gy_fail_nomem(k->err);
    for (; i != GY_IMAP_NONE && map->at[i].first < a->last; i = gy_imap_next(map, i)) {
        if (gy_access_reduces(a)) {
            content = (gy_content_id)map->at[i].payload;
            if (content == GY_UNKNOWN) /* no previous value */
                content = gy_content_identity(&k->contents, gy_value_dtype(k, value), a->mode);
            content = gy_content_add(&k->contents, content, a->mode, access);
        }
        map->at[i].payload = content;
    }
    gy_imap_join(map, a->first, a->last);
    return k->contents.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

/* Reads see what was there before the task, also where the task itself writes. */
static gantry_status execute(gy_check *k, uint32_t task)
{
    const gy_task *t = &k->flow->task[task];
    uint32_t accesses = k->graph->nodes.at[t->node].accesses;
    for (uint32_t phase = 0; phase < 2; phase++) {
        for (uint32_t i = 0; i < accesses; i++) {
            size_t access = (size_t)t->access + i;
            const gy_access *a = gy_flow_access_of(k->graph, k->flow, access);
            uint32_t value = k->flow->access[access].value;
            gantry_status status = GANTRY_OK;
            if (phase == 0) {
                k->expect.first[2 * access] = k->expect.run.count;
                if (a->first < a->last && (a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE))
                    status = read_rows(k, value, a->first, a->last, &k->expect.run);
                k->expect.first[2 * access + 1] = k->expect.run.count;
            } else if (a->first < a->last && a->mode != GANTRY_READ) {
                gy_content_id content = gy_access_reduces(a) ? GY_UNKNOWN : gy_content_written(k, t->node, access);
                status = write_rows(k, value, a, content, access);
            }
            if (status)
                return status;
        }
    }
    return GANTRY_OK;
}

/* Nodes of one iteration as they were added, those of inner loops iteration after iteration. `turn`: how often the
 * iteration's own nodes have run before. */
static gantry_status execute_range(gy_check *k, const gy_range *range, int64_t turn)
{
    const gy_loop *inner = k->graph->inner.at;
    gantry_status status = GANTRY_OK;
    uint32_t node = range->first;
    for (uint32_t i = range->inner; !status && i < range->inner_last; i = inner[i].inner_last) {
        gy_range body = gy_loop_range(&inner[i]);
        for (; !status && node < body.first; node++)
            status = execute(k, k->task[k->task_first[node] + (size_t)turn]);
        for (int64_t it = 0; !status && inner[i].tasks > 0 && it < inner[i].count; it++)
            status = execute_range(k, &body, turn * inner[i].count + it);
        node = body.last;
    }
    for (; !status && node < range->last; node++)
        status = execute(k, k->task[k->task_first[node] + (size_t)turn]);
    return status;
}

/* Nodes as they were added; those of a loop, iteration after iteration. */
static gantry_status execute_all(gy_check *k)
{
    gantry_status status = GANTRY_OK;
    const gantry_graph *g = k->graph;
    for (uint32_t node = gy_graph_first_node(g); !status && node < gy_graph_last_node(g); node++) {
        uint32_t loop = g->nodes.at[node].loop;
        if (loop == GY_NONE) {
            status = execute(k, k->task[k->task_first[node]]);
            continue;
        }
        gy_range body = gy_loop_range(&g->loops.at[loop]);
        for (int64_t it = 0; !status && g->loops.at[loop].tasks > 0 && it < g->loops.at[loop].unrolled; it++)
            status = execute_range(k, &body, it);
        node = body.last - 1;
    }
    return status;
}

gantry_status gy_expect_make(gy_check *k)
{
    k->expect.values = k->flow->values;
    k->expect.value = gy_calloc(k->flow->values + 1u, sizeof *k->expect.value);
    k->expect.first = gy_calloc(k->flow->accesses + 1, 2 * sizeof *k->expect.first);
    if (!k->expect.value || !k->expect.first)
        return gy_fail_nomem(k->err);
    return execute_all(k);
}

void gy_expect_free(gy_expect *e)
{
    for (uint32_t i = 0; e->value && i < e->values; i++)
        gy_imap_free(&e->value[i]);
    gy_free(e->value);
    gy_free(e->first);
    gy_vec_free(&e->run);
}

gantry_status gy_final_runs(gy_check *k, uint32_t buffer, int64_t first, int64_t last, gy_runs *to)
{
    return first < last ? read_rows(k, k->flow->exit[buffer], first, last, to) : GANTRY_OK;
}
