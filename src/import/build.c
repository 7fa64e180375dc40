/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The graph: a work node for each task, a buffer of bytes for each item of data, plain order where nothing is moved.
 * What a task keeps in its device's memory is a const buffer that it alone reads: it takes room all the time and no
 * time.
 */
#include "import/import.h"

#include "base/map.h"
#include "graph/build/build.h"
#include <stdio.h>
#include <string.h>

/* Indices by task: what[first[t] .. first[t + 1]). */
typedef struct by_task {
    uint32_t *what;
    size_t *first;
} by_task;

typedef struct builder {
    gy_import *in;
    gantry_graph *graph;
    uint32_t *node;   /* per task */
    uint32_t *buffer; /* per item */
    by_task reads, writes, before;
    gy_names names; /* of buffers */
    gy_map suffix;  /* name -> next number to try behind '#' */
    gy_map pairs;   /* task, task: order that is there already; item, task with the high bit: reads */
} builder;

/* ---- lists by task ---- */

static uint32_t task_of(const gy_import *in, const by_task *list, const builder *b, size_t i)
{
    return list == &b->reads    ? in->reads.at[i].task
           : list == &b->writes ? in->items.at[i].from
                                : in->orders.at[i].after;
}

static bool group(builder *b, by_task *list, size_t count)
{
    const gy_import *in = b->in;
    size_t tasks = in->tasks.count;
    list->what = gy_calloc(count + 1, sizeof *list->what);
    list->first = gy_calloc(tasks + 2, sizeof *list->first);
    if (!list->what || !list->first)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t task = task_of(in, list, b, i);
        if (task != GY_IMPORT_NONE)
            list->first[task + 2]++;
    }
    for (size_t t = 2; t <= tasks + 1; t++)
        list->first[t] += list->first[t - 1];
    for (size_t i = 0; i < count; i++) {
        uint32_t task = task_of(in, list, b, i);
        if (task != GY_IMPORT_NONE)
            list->what[list->first[task + 1]++] = (uint32_t)i;
    }
    return true;
}

/* ---- buffers ---- */

/* Names of buffers may not have what references are made of. */
static bool make_name(gy_text *to, const char *name)
{
    to->length = 0;
    gy_text_add(to, *name ? name : "_");
    if (to->failed)
        return false;
    for (char *at = to->at; *(at += gy_name_length(at));)
        *at = '_';
    return true;
}

/* "x", or "x#1", "x#2" where that is taken; NULL: out of memory. */
static const char *unique_name(builder *b, const char *name)
{
    gy_text text = { 0 };
    bool is_new = false;
    uint32_t index = make_name(&text, name) ? gy_names_add(&b->names, text.at, &is_new) : GY_NO_NAME;
    uint64_t base = index, number = 1;
    if (index != GY_NO_NAME && !is_new && gy_map_get(&b->suffix, base, &number))
        number++;
    size_t length = text.length;
    for (; index != GY_NO_NAME && !is_new; number++) {
        text.length = length;
        gy_text_printf(&text, "#%llu", (unsigned long long)number);
        index = text.failed ? GY_NO_NAME : gy_names_add(&b->names, text.at, &is_new);
        if (is_new && !gy_map_put(&b->suffix, base, number))
            index = GY_NO_NAME;
    }
    gy_text_free(&text);
    return index == GY_NO_NAME ? NULL : gy_names_at(&b->names, index);
}

static void set_place(const builder *b, const gy_import_task *t)
{
    if (t->pointer)
        gy_graph_set_origin(b->graph, t->pointer);
    else if (t->line)
        gantry_graph_at(b->graph, b->in->source, t->line);
}

static bool add_buffer(builder *b, const char *name, int64_t bytes, gantry_buffer *made)
{
    const char *unique = unique_name(b, name);
    if (!unique)
        return false;
    *made = gantry_graph_buffer(b->graph, unique, GANTRY_U8, 1, &bytes);
    return true;
}

static bool add_items(builder *b)
{
    for (size_t i = 0; i < b->in->items.count; i++) {
        const gy_import_item *item = &b->in->items.at[i];
        gantry_buffer made;
        if (item->from != GY_IMPORT_NONE)
            set_place(b, &b->in->tasks.at[item->from]);
        if (!add_buffer(b, item->name, gy_import_bytes(b->in, item), &made))
            return false;
        if (item->from == GY_IMPORT_NONE)
            gantry_buffer_init_value(b->graph, made, 0);
        b->buffer[i] = made.id;
    }
    return true;
}

static bool add_resident(builder *b, const gy_import_task *t, gantry_node node)
{
    gantry_buffer made;
    char name[256];
    snprintf(name, sizeof name, "%.240s.memory", t->id);
    if (!add_buffer(b, name, t->resident, &made))
        return false;
    gantry_buffer_init_value(b->graph, made, 0);
    gantry_buffer_set_class(b->graph, made, GANTRY_CONST);
    gantry_node_read(b->graph, node, gantry_all(made));
    return true;
}

/* ---- nodes ---- */

static void add_cost(const builder *b, const gy_import_task *t, gantry_node node)
{
    const gy_import *in = b->in;
    if (t->time < 0) {
        gantry_node_cost(b->graph, node, t->flops, 0);
        return;
    }
    if (!in->by_kind) {
        gantry_node_time(b->graph, node, NULL, t->time * in->unit_us);
        return;
    }
    if (in->accelerators && !t->cpu_only)
        gantry_node_time(b->graph, node, "fpga", t->time * in->unit_us);
    if (in->cpus)
        gantry_node_time(b->graph, node, "cpu", t->cpu * in->unit_us);
    if (t->cpu_only && in->accelerators)
        gantry_node_on(b->graph, node, "cpu");
}

/* true the first time. */
static bool is_first(builder *b, uint64_t key, bool *nomem)
{
    uint64_t ignored;
    if (gy_map_get(&b->pairs, key, &ignored))
        return false;
    *nomem = *nomem || !gy_map_put(&b->pairs, key, 1);
    return true;
}

static bool add_reads(builder *b, uint32_t task, gantry_node node)
{
    const gy_import *in = b->in;
    bool nomem = false;
    for (size_t i = b->reads.first[task]; i < b->reads.first[task + 1]; i++) {
        uint32_t item = in->reads.at[b->reads.what[i]].item, from = in->items.at[item].from;
        if (!is_first(b, gy_import_pair(item | UINT32_C(1) << 31, task), &nomem))
            continue;
        if (from != GY_IMPORT_NONE)
            is_first(b, gy_import_pair(from, task), &nomem); /* data bring order with them */
        gantry_node_read(b->graph, node, gantry_all((gantry_buffer){ .id = b->buffer[item] }));
    }
    return !nomem;
}

static bool add_order(builder *b, uint32_t task, gantry_node node)
{
    const gy_import *in = b->in;
    bool nomem = false;
    for (size_t i = b->before.first[task]; i < b->before.first[task + 1]; i++) {
        uint32_t before = in->orders.at[b->before.what[i]].before;
        if (is_first(b, gy_import_pair(before, task), &nomem))
            gantry_node_after(b->graph, node, (gantry_node){ .id = b->node[before] });
    }
    return !nomem;
}

static bool add_node(builder *b, uint32_t task)
{
    const gy_import_task *t = &b->in->tasks.at[task];
    set_place(b, t);
    gantry_node node = gantry_graph_work(b->graph, *t->id ? t->id : "task");
    b->node[task] = node.id;
    add_cost(b, t, node);
    if (t->scratch > 0)
        gantry_node_scratch(b->graph, node, t->scratch);
    if (t->resident > 0 && !add_resident(b, t, node))
        return false;
    if (!add_reads(b, task, node))
        return false;
    for (size_t i = b->writes.first[task]; i < b->writes.first[task + 1]; i++)
        gantry_node_write(b->graph, node, gantry_all((gantry_buffer){ .id = b->buffer[b->writes.what[i]] }));
    return add_order(b, task, node);
}

static bool add_nodes(builder *b, const uint32_t *sorted)
{
    const gy_import *in = b->in;
    for (size_t i = 0; i < in->tasks.count; i++)
        if (!add_node(b, sorted[i]))
            return false;
    for (size_t i = 0; i < in->tasks.count; i++)
        if (in->tasks.at[i].with != GY_IMPORT_NONE)
            gantry_node_with(b->graph, (gantry_node){ .id = b->node[i] },
                             (gantry_node){ .id = b->node[in->tasks.at[i].with] });
    return true;
}

/* ---- all of it ---- */

static bool prepare(builder *b)
{
    b->node = gy_calloc(b->in->tasks.count + 1, sizeof *b->node);
    b->buffer = gy_calloc(b->in->items.count + 1, sizeof *b->buffer);
    return b->node && b->buffer && group(b, &b->reads, b->in->reads.count) &&
           group(b, &b->writes, b->in->items.count) && group(b, &b->before, b->in->orders.count);
}

static void free_group(by_task *list)
{
    gy_free(list->what);
    gy_free(list->first);
}

gantry_graph *gy_import_build(gy_import *in, const uint32_t *sorted, const char *machine)
{
    builder b = { .in = in, .graph = gantry_graph_new(in->name) };
    if (b.graph) {
        gy_graph_set_source(b.graph, in->source, in->has_pointers ? in->path : NULL, NULL);
        gy_graph_set_machine(b.graph, machine, NULL);
    }
    if (b.graph && !(prepare(&b) && add_items(&b) && add_nodes(&b, sorted))) {
        gantry_graph_free(b.graph);
        b.graph = NULL;
    }
    gy_free(b.node);
    gy_free(b.buffer);
    free_group(&b.reads);
    free_group(&b.writes);
    free_group(&b.before);
    gy_names_free(&b.names);
    gy_map_free(&b.suffix);
    gy_map_free(&b.pairs);
    return b.graph;
}
