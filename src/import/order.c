/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of Gantry depends by the order of adding, so tasks are added after those that they depend on. */
#include "import/import.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* Successors of task t: next[first[t] .. first[t + 1]), one entry an edge. */
typedef struct links {
    uint32_t *next, *waits, *heap;
    size_t *first;
    uint32_t heap_count;
} links;

static gy_import_order edge_at(const gy_import *in, size_t i)
{
    if (i < in->orders.count)
        return in->orders.at[i];
    const gy_import_read *r = &in->reads.at[i - in->orders.count];
    return (gy_import_order){ in->items.at[r->item].from, r->task };
}

static bool make_links(const gy_import *in, links *l)
{
    size_t tasks = in->tasks.count, edges = in->orders.count + in->reads.count;
    l->next = gy_calloc(edges + 1, sizeof *l->next);
    l->first = gy_calloc(tasks + 2, sizeof *l->first);
    l->waits = gy_calloc(tasks + 1, sizeof *l->waits);
    l->heap = gy_calloc(tasks + 1, sizeof *l->heap);
    if (!l->next || !l->first || !l->waits || !l->heap)
        return false;
    for (size_t i = 0; i < edges; i++) {
        gy_import_order e = edge_at(in, i);
        if (e.before == GY_IMPORT_NONE)
            continue;
        l->first[e.before + 2]++;
        l->waits[e.after]++;
    }
    for (size_t t = 2; t <= tasks + 1; t++)
        l->first[t] += l->first[t - 1];
    for (size_t i = 0; i < edges; i++) {
        gy_import_order e = edge_at(in, i);
        if (e.before != GY_IMPORT_NONE)
            l->next[l->first[e.before + 1]++] = e.after;
    }
    return true;
}

static void free_links(links *l)
{
    gy_free(l->next);
    gy_free(l->first);
    gy_free(l->waits);
    gy_free(l->heap);
}

/* ---- the ready tasks, the first of the file on top ---- */

static void push(links *l, uint32_t task)
{
    uint32_t i = l->heap_count++;
    for (; i && task < l->heap[(i - 1) / 2]; i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = task;
}

static uint32_t pop(links *l)
{
    uint32_t top = l->heap[0], last = l->heap[--l->heap_count], i = 0;
    for (uint32_t child; (child = 2 * i + 1) < l->heap_count; i = child) {
        if (child + 1 < l->heap_count && l->heap[child + 1] < l->heap[child])
            child++;
        if (last < l->heap[child])
            break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = last;
    return top;
}

static size_t sort(const gy_import *in, links *l, uint32_t *sorted)
{
    size_t done = 0;
    for (uint32_t t = 0; t < in->tasks.count; t++)
        if (l->waits[t] == 0)
            push(l, t);
    while (l->heap_count) {
        uint32_t task = pop(l);
        sorted[done++] = task;
        for (size_t i = l->first[task]; i < l->first[task + 1]; i++)
            if (--l->waits[l->next[i]] == 0)
                push(l, l->next[i]);
    }
    return done;
}

/* ---- circles ---- */

/* Going back from a task that waits, along tasks that wait, ends in a circle. The heap becomes: task -> one it waits
 * for. Returns the first task of the file in the circle. */
static uint32_t find_circle(const gy_import *in, links *l)
{
    uint32_t *back = l->heap, task = GY_IMPORT_NONE, first;
    for (uint32_t t = 0; t < in->tasks.count; t++) {
        if (l->waits[t] == 0)
            continue;
        task = t;
        for (size_t i = l->first[t]; i < l->first[t + 1]; i++)
            back[l->next[i]] = t;
    }
    for (size_t i = 0; i < in->tasks.count; i++)
        task = back[task];
    first = task;
    for (uint32_t t = back[task]; t != task; t = back[t])
        first = t < first ? t : first;
    return first;
}

/* The circle in the direction of its arrows, beginning at `start`; its length. */
static uint32_t list_circle(const links *l, uint32_t start, uint32_t *circle)
{
    uint32_t length = 1;
    for (uint32_t t = l->heap[start]; t != start; t = l->heap[t])
        length++;
    circle[0] = start;
    for (uint32_t i = length; --i > 0;)
        circle[i] = l->heap[i + 1 < length ? circle[i + 1] : start];
    return length;
}

static gantry_status fail_circle(const gy_import *in, links *l, gantry_error *err)
{
    enum { SHOWN = 6 };
    gy_text text = { 0 };
    uint32_t *circle = l->waits, start = find_circle(in, l), length = list_circle(l, start, circle);
    for (uint32_t i = 0; i < length && i < SHOWN; i++)
        gy_text_printf(&text, "%.40s -> ", in->tasks.at[circle[i]].id);
    gy_text_printf(&text, "%.40s", length > SHOWN ? "..." : in->tasks.at[start].id);
    gantry_status status =
        text.failed
            ? gy_fail_nomem(err)
            : gy_import_fail(in, start, err,
                             "tasks depend on each other in a circle of %u: %s; take one of these dependencies away",
                             length, text.at);
    gy_text_free(&text);
    return status;
}

gantry_status gy_import_sort(const gy_import *in, uint32_t *sorted, gantry_error *err)
{
    links l = { 0 };
    gantry_status status = GANTRY_OK;
    if (!make_links(in, &l))
        status = gy_fail_nomem(err);
    else if (sort(in, &l, sorted) < in->tasks.count)
        status = fail_circle(in, &l, err);
    free_links(&l);
    return status;
}
