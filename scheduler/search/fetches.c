/* SPDX-License-Identifier: Apache-2.0 */
/** Bytes of outputs that go to host memory behind each task of the model: of rows that no later task writes. */
#include "scheduler/search/model.h"

#include "base/error.h"
#include "base/imap.h"

/* One map per output value; payloads become the last writer of each row, + 1. */
static bool note_writes(const gy_plan *p, gy_imap *const *map, uint32_t task)
{
    const gy_flow *f = p->flow;
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses; k++) {
        size_t x = f->task[task].access + k;
        gy_imap *rows = map[f->access[x].value];
        const gy_access *a = gy_flow_access_of(p->graph, f, x);
        if (rows && a->mode != GANTRY_READ && !gy_imap_set(rows, a->first, a->last, (uint64_t)task + 1))
            return false;
    }
    return true;
}

static void add_bytes(const gy_plan *p, const gy_imap *rows, uint32_t value, int64_t *bytes)
{
    const gy_buffer *b = gy_value_buffer(p->graph, p->flow, value);
    for (uint32_t i = gy_imap_find(rows, 0); i != GY_IMAP_NONE; i = gy_imap_next(rows, i))
        if (rows->at[i].payload)
            bytes[rows->at[i].payload - 1] += gy_buffer_span(b, rows->at[i].first, rows->at[i].last);
}

/* Bytes of outputs that each task is the last to write. */
static bool count_fetches(const gy_plan *p, gy_imap **map, int64_t *bytes)
{
    const gy_flow *f = p->flow;
    bool done = true;
    for (uint32_t b = 0; b < p->graph->buffers.count && done; b++) {
        uint32_t value = f->exit[b];
        if (!p->graph->buffers.at[b].output || map[value])
            continue;
        map[value] = gy_calloc(1, sizeof **map);
        done = map[value] && gy_imap_init(map[value], 0, gy_value_buffer(p->graph, f, value)->rows, 0);
    }
    for (uint32_t t = 0; t < f->tasks && done; t++)
        done = note_writes(p, map, t);
    for (uint32_t v = 0; v < f->values && done; v++)
        if (map[v])
            add_bytes(p, map[v], v, bytes);
    for (uint32_t v = 0; v < f->values; v++) {
        if (map[v])
            gy_imap_free(map[v]);
        gy_free(map[v]);
    }
    return done;
}

gantry_status gy_model_fetches(gy_model *m, gantry_error *err)
{
    int64_t *bytes = gy_calloc((size_t)m->tasks + 1, sizeof *bytes);
    gy_imap **map = gy_calloc((size_t)m->plan->flow->values + 1, sizeof *map);
    m->fetch = gy_calloc((size_t)m->tasks + 1, sizeof *m->fetch);
    bool done = bytes && map && m->fetch && count_fetches(m->plan, map, bytes);
    for (uint32_t t = 0; t < m->tasks && done; t++)
        done = gy_model_size(m, bytes[t], &m->fetch[t]);
    gy_free(bytes);
    gy_free((void *)map);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
