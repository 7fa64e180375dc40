/* SPDX-License-Identifier: Apache-2.0 */
/* Listing tasks where `after` names a later node: Kahn's algorithm, the task added first of those that are ready. */
#include "base/error.h"
#include "graph/flow/flow_build.h"
#include <string.h>

typedef struct sorter {
    gy_flow *flow;
    gy_followers followers;
    uint32_t *waits; /* per list of predecessors: those that are not listed yet */
    uint32_t *heap, heap_count;
    uint32_t *order; /* tasks as they come */
    uint32_t *rank;  /* the inverse */
} sorter;

/* ---- a heap of task numbers, least first ---- */

static void push(sorter *s, uint32_t task)
{
    uint32_t i = s->heap_count++;
    for (; i > 0 && s->heap[(i - 1) / 2] > task; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = task;
}

static uint32_t pop(sorter *s)
{
    uint32_t least = s->heap[0], moved = s->heap[--s->heap_count], i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= s->heap_count)
            break;
        child += child + 1 < s->heap_count && s->heap[child + 1] < s->heap[child];
        if (s->heap[child] >= moved)
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = moved;
    return least;
}

/* ---- sorting ---- */

static bool allocate(sorter *s)
{
    uint32_t tasks = s->flow->tasks;
    s->waits = gy_calloc(s->flow->lists, sizeof *s->waits);
    s->heap = gy_calloc(tasks, sizeof *s->heap);
    s->order = gy_calloc(tasks, sizeof *s->order);
    s->rank = gy_calloc(tasks, sizeof *s->rank);
    return gy_followers_make(&s->followers, s->flow) && s->waits && s->heap && s->order && s->rank;
}

static bool is_waiting(const sorter *s, uint32_t task)
{
    return s->waits[s->flow->list[task]] > 0;
}

static void push_members(sorter *s, uint32_t list)
{
    for (size_t i = s->followers.member_first[list]; i < s->followers.member_first[list + 1]; i++)
        push(s, s->followers.member[i]);
}

/* How many tasks could be listed: all of them unless there is a circle. */
static uint32_t list_tasks(sorter *s)
{
    const gy_flow *f = s->flow;
    uint32_t listed = 0;
    for (uint32_t l = 0; l < f->lists; l++) {
        s->waits[l] = (uint32_t)(f->dep_first[l + 1] - f->dep_first[l]);
        if (s->waits[l] == 0)
            push_members(s, l);
    }
    while (s->heap_count > 0) {
        uint32_t t = pop(s);
        s->rank[t] = listed;
        s->order[listed++] = t;
        for (size_t i = s->followers.list_first[t]; i < s->followers.list_first[t + 1]; i++)
            if (--s->waits[s->followers.list[i]] == 0)
                push_members(s, s->followers.list[i]);
    }
    return listed;
}

/* ---- a circle ---- */

/* A predecessor that is not listed: every task that is left has one. */
static uint32_t unlisted_before(const sorter *s, uint32_t t)
{
    const gy_flow *f = s->flow;
    for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
        if (is_waiting(s, d->from))
            return d->from;
    return t;
}

static void add_task_name(gy_text *to, const gantry_graph *g, const gy_task *task)
{
    const gy_node *n = &g->nodes.at[task->node];
    gy_text_printf(to, "\"%s\"", n->id);
    if (n->loop != GY_NONE)
        gy_text_printf(to, " (iteration %u)", task->iteration);
}

enum { SHOWN = 8 };

/* `order` is free: nothing more is listed. It takes the circle, last task first. */
static gantry_status say_circle(sorter *s, const gantry_graph *g, gantry_error *err)
{
    uint32_t t = 0, length = 0, least = 0;
    while (!is_waiting(s, t))
        t++;
    memset(s->rank, 0, s->flow->tasks * sizeof *s->rank); /* visited */
    for (; s->rank[t] == 0; t = unlisted_before(s, t))
        s->rank[t] = 1;
    uint32_t start = t;
    do {
        s->order[length++] = t;
        t = unlisted_before(s, t);
    } while (t != start);
    for (uint32_t i = 1; i < length; i++)
        least = s->order[i] < s->order[least] ? i : least;
    gy_text text = { 0 };
    for (uint32_t i = 0; i < length && i < SHOWN; i++) {
        add_task_name(&text, g, &s->flow->task[s->order[(least + length - i) % length]]);
        gy_text_add(&text, " -> ");
    }
    if (length > SHOWN)
        gy_text_printf(&text, "(%u more) -> ", length - SHOWN);
    const gy_task *first = &s->flow->task[s->order[least]];
    add_task_name(&text, g, first);
    gantry_status status = text.failed
                               ? gy_fail_nomem(err)
                               : gy_graph_fail(g, g->nodes.at[first->node].origin, err, GANTRY_E_GRAPH,
                                               "nodes wait for each other in a circle: %s; drop one `after`", text.at);
    gy_text_free(&text);
    return status;
}

/* ---- renumbering ---- */

static int before(const gy_dep *a, const gy_dep *b)
{
    return a->from < b->from;
}

/* A list of predecessors, with new numbers, by `from`: few, and nearly sorted. */
static void copy_deps(gy_dep *to, const gy_dep *from, size_t count, const uint32_t *rank)
{
    for (size_t i = 0; i < count; i++) {
        gy_dep moved = from[i];
        moved.from = rank[moved.from];
        size_t k = i;
        for (; k > 0 && before(&moved, &to[k - 1]); k--)
            to[k] = to[k - 1];
        to[k] = moved;
    }
}

static bool renumber(sorter *s)
{
    gy_flow *f = s->flow;
    gy_task *task = gy_calloc(f->tasks, sizeof *task);
    gy_dep *dep = gy_calloc(f->dep_first[f->lists], sizeof *dep);
    uint32_t *list = gy_calloc(f->tasks, sizeof *list);
    if (!task || !dep || !list) {
        gy_free(task);
        gy_free(dep);
        gy_free(list);
        return false;
    }
    for (uint32_t i = 0; i < f->tasks; i++) {
        task[i] = f->task[s->order[i]];
        list[i] = f->list[s->order[i]];
    }
    for (uint32_t l = 0; l < f->lists; l++)
        copy_deps(dep + f->dep_first[l], f->dep + f->dep_first[l], f->dep_first[l + 1] - f->dep_first[l], s->rank);
    gy_free(f->task);
    gy_free(f->dep);
    gy_free(f->list);
    f->task = task;
    f->dep = dep;
    f->list = list;
    return true;
}

gantry_status gy_flow_sort(gy_flow *flow, const gantry_graph *graph, gantry_error *err)
{
    sorter s = { .flow = flow };
    gantry_status status = GANTRY_OK;
    if (!allocate(&s)) {
        status = gy_fail_nomem(err);
        goto free_sorter;
    }
    if (list_tasks(&s) < flow->tasks)
        status = say_circle(&s, graph, err);
    else if (!renumber(&s))
        status = gy_fail_nomem(err);
free_sorter:
    gy_followers_free(&s.followers);
    gy_free(s.waits);
    gy_free(s.heap);
    gy_free(s.order);
    gy_free(s.rank);
    return status;
}
