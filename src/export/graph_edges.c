/* SPDX-License-Identifier: Apache-2.0 */
#include "export/graph_edges.h"

#include "base/map.h"
#include "graph/nest.h"

#include <stdlib.h>

static bool is_read(const gy_access *a)
{
    return a->mode != GANTRY_WRITE;
}
static bool is_write(const gy_access *a)
{
    return a->mode != GANTRY_READ;
}

static const gy_access *access_of(const gantry_graph *g, const gy_task *t, uint32_t k)
{
    return gy_flow_access_of(g, g->flow, t->access + k);
}

static uint32_t value_of(const gantry_graph *g, const gy_task *t, uint32_t k)
{
    return g->flow->access[t->access + k].value;
}

static bool overlap(const gy_access *a, const gy_access *b)
{
    return a->first < b->last && b->first < a->last;
}

/* ---- between nodes ---- */

static bool add_dependency(gy_arrows *a, gy_map *seen, uint32_t from, uint32_t to, uint32_t kinds)
{
    const gy_flow *f = a->graph->flow;
    const gy_task *x = &f->task[from], *y = &f->task[to];
    int64_t first, last;
    gy_node_partners(a->graph, &a->graph->nodes.at[y->node], &a->graph->nodes.at[x->node], y->iteration, &first, &last);
    bool carried = x->iteration < first || x->iteration >= last;
    uint32_t tail = a->fold->of[x->node], head = a->fold->of[y->node];
    /* The first two iterations show what all do. */
    if (tail == GY_NONE || head == GY_NONE || y->iteration > 1 || (!carried && y->iteration > 0))
        return true;
    uint64_t key = ((uint64_t)tail << 32 | head) << 1 | carried, index;
    if (gy_map_get(seen, key, &index)) {
        a->between.at[index].data = a->between.at[index].data || (kinds & GY_DEP_DATA);
        return true;
    }
    gy_arrow arrow = {
        .from = tail, .to = head, .tasks = { from, to }, .data = (kinds & GY_DEP_DATA) != 0, .carried = carried
    };
    return gy_map_put(seen, key, a->between.count) && gy_vec_push(&a->between, arrow);
}

static bool collect_dependencies(gy_arrows *a)
{
    const gy_flow *f = a->graph->flow;
    gy_map seen = { 0 };
    bool fine = true;
    for (uint32_t t = 0; fine && t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); fine && d < gy_deps_end(f, t); d++)
            fine = add_dependency(a, &seen, d->from, t, d->kinds);
    gy_map_free(&seen);
    return fine;
}

static uint32_t boxes(const gy_arrows *a)
{
    return (uint32_t)a->fold->box.count;
}

/* Marks what `from` reaches through arrows of data within an iteration; nodes are in topological order. */
static void reach(const gy_arrows *a, uint32_t from, uint8_t *reached, const uint32_t *first)
{
    for (uint32_t i = 0; i < boxes(a); i++)
        reached[i] = i == from;
    for (uint32_t n = from; n < boxes(a); n++)
        for (uint32_t e = first[n]; reached[n] && e < first[n + 1]; e++)
            if (a->between.at[e].data && !a->between.at[e].carried)
                reached[a->between.at[e].to] = 1;
}

static int by_from(const void *x, const void *y)
{
    const gy_arrow *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to != b->to ? (a->to > b->to) - (a->to < b->to) : a->carried - b->carried;
}

static bool drop_implied(gy_arrows *a)
{
    uint8_t *reached = gy_calloc(boxes(a) + 1, 1);
    uint32_t *first = gy_calloc((size_t)boxes(a) + 1, sizeof *first);
    bool fine = reached && first;
    if (fine) {
        if (a->between.count > 0)
            qsort(a->between.at, a->between.count, sizeof *a->between.at, by_from);
        for (size_t i = 0; i < a->between.count; i++)
            first[a->between.at[i].from + 1]++;
        for (uint32_t i = 0; i < boxes(a); i++)
            first[i + 1] += first[i];
        for (uint32_t n = 0; n < boxes(a); n++) {
            reach(a, n, reached, first);
            for (uint32_t e = first[n]; e < first[n + 1]; e++)
                if (!a->between.at[e].data && !a->between.at[e].carried && reached[a->between.at[e].to])
                    a->between.at[e].from = GY_NONE;
        }
        size_t kept = 0;
        for (size_t i = 0; i < a->between.count; i++)
            if (a->between.at[i].from != GY_NONE)
                a->between.at[kept++] = a->between.at[i];
        a->between.count = kept;
    }
    gy_free(reached);
    gy_free(first);
    return fine;
}

/* ---- inputs and outputs ---- */

static bool comes_from_task(const gantry_graph *g, uint32_t task, uint32_t k)
{
    const gy_flow *f = g->flow;
    const gy_task *t = &f->task[task];
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++) {
        const gy_task *other = &f->task[d->from];
        for (uint32_t i = 0; i < g->nodes.at[other->node].accesses; i++)
            if (value_of(g, other, i) == value_of(g, t, k) && is_write(access_of(g, other, i)) &&
                overlap(access_of(g, other, i), access_of(g, t, k)))
                return true;
    }
    return false;
}

static bool goes_on(const gantry_graph *g, uint32_t task, uint32_t k)
{
    const gy_task *t = &g->flow->task[task];
    for (uint32_t later = task + 1; later < g->flow->tasks; later++) {
        const gy_task *other = &g->flow->task[later];
        for (uint32_t i = 0; i < g->nodes.at[other->node].accesses; i++) {
            const gy_access *mine = access_of(g, t, k), *its = access_of(g, other, i);
            bool both_add = mine->mode == its->mode && mine->mode >= GANTRY_SUM;
            if (value_of(g, other, i) == value_of(g, t, k) && is_write(its) && overlap(its, mine) && !both_add)
                return true;
        }
    }
    return false;
}

/* `output` says for each value which output it is at the end of a start: buffer + 1, or 0. */
static bool add_ends(gy_arrows *a, uint32_t task, const uint32_t *output)
{
    const gantry_graph *g = a->graph;
    const gy_task *t = &g->flow->task[task];
    uint32_t box = a->fold->of[t->node];
    for (uint32_t k = 0; k < g->nodes.at[t->node].accesses; k++) {
        const gy_access *access = access_of(g, t, k);
        uint32_t buffer = access->buffer, value = value_of(g, t, k);
        gy_arrow arrow = {
            .from = buffer, .to = box, .tasks = { task, task }, .access = g->flow->access[t->access + k].access
        };
        bool has_contents = g->buffers.at[buffer].cls != GANTRY_TEMP && value == g->flow->entry[buffer];
        if (is_read(access) && has_contents && !comes_from_task(g, task, k) && !gy_vec_push(&a->inputs, arrow))
            return false;
        arrow.from = box;
        arrow.to = output[value] - 1;
        if (is_write(access) && output[value] > 0 && !goes_on(g, task, k) && !gy_vec_push(&a->outputs, arrow))
            return false;
    }
    return true;
}

/* The search is pairwise: for pictures small enough to look at. */
static bool collect_ends(gy_arrows *a)
{
    const gy_flow *f = a->graph->flow;
    if (!a->fold->whole || f->tasks > 4096)
        return true;
    uint32_t *output = gy_calloc(f->values, sizeof *output);
    bool fine = output != NULL;
    for (uint32_t b = 0; fine && b < a->graph->buffers.count; b++)
        if (a->graph->buffers.at[b].output)
            output[f->exit[b]] = b + 1;
    for (uint32_t t = 0; fine && t < f->tasks; t++)
        fine = add_ends(a, t, output);
    gy_free(output);
    return fine;
}

/* Each pair of a buffer and a box once: of a family many nodes read the same buffer. */
static void drop_repeated(gy_arrow *at, size_t *count)
{
    size_t kept = 0;
    if (*count > 0)
        qsort(at, *count, sizeof *at, by_from);
    for (size_t i = 0; i < *count; i++)
        if (kept == 0 || by_from(&at[kept - 1], &at[i]) != 0)
            at[kept++] = at[i];
    *count = kept;
}

bool gy_arrows_make(gy_arrows *arrows, const gy_fold *fold)
{
    *arrows = (gy_arrows){ .graph = fold->graph, .fold = fold };
    if (!collect_dependencies(arrows) || (!fold->folded && !drop_implied(arrows)) || !collect_ends(arrows))
        return false;
    if (fold->folded) {
        drop_repeated(arrows->inputs.at, &arrows->inputs.count);
        drop_repeated(arrows->outputs.at, &arrows->outputs.count);
    }
    return true;
}

void gy_arrow_text(gy_text *to, const gy_arrows *arrows, const gy_arrow *arrow)
{
    const gantry_graph *g = arrows->graph;
    const gy_task *x = &g->flow->task[arrow->tasks[0]], *y = &g->flow->task[arrow->tasks[1]];
    int listed = 0;
    for (uint32_t k = 0; k < g->nodes.at[y->node].accesses; k++)
        for (uint32_t i = 0; i < g->nodes.at[x->node].accesses; i++) {
            const gy_access *to_access = access_of(g, y, k), *from_access = access_of(g, x, i);
            if (value_of(g, x, i) != value_of(g, y, k) || !is_write(from_access) || !is_read(to_access) ||
                !overlap(from_access, to_access))
                continue;
            gy_text_add(to, listed == 0 ? "" : listed < 3 ? ", " : listed == 3 ? ", …" : "");
            if (listed++ < 3)
                gy_access_text(to, g, to_access);
            break;
        }
}

void gy_arrows_free(gy_arrows *arrows)
{
    gy_vec_free(&arrows->between);
    gy_vec_free(&arrows->inputs);
    gy_vec_free(&arrows->outputs);
}
