/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of a node come from, and when they could be where. */
#include "scheduler/explain/explain.h"

#include "scheduler/cost/cost.h"

#define SHOWN 8 /* inputs listed for each candidate */

static const char *memory_id(const gy_plan *p, uint32_t memory)
{
    return p->machine->memory[memory].id;
}

static const char *device_id(const gy_plan *p, uint32_t device)
{
    return p->machine->device[device].id;
}

/* ---- inputs ---- */

bool gy_inputs_find(gy_inputs *in, const gy_plan *p, uint32_t task, uint32_t memory)
{
    const gy_flow *f = p->flow;
    in->count = 0;
    if (p->inputs.upload[task]) {
        gy_input up = { .bytes = p->inputs.upload[task],
                        .takes =
                            gy_transfer_time(p, p->machine->memory[memory].arrays, memory, p->inputs.upload[task]) };
        up.arrives = up.takes;
        if (!gy_vec_push(in, up))
            return false;
    }
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++) {
        gy_input one = { .dep = d, .made = p->placed.finish[d->from], .bytes = d->kinds & GY_DEP_DATA ? d->bytes : 0 };
        one.memory = gy_plan_nearest(p, d->from, memory, one.bytes);
        one.takes = gy_transfer_time(p, one.memory, memory, one.bytes);
        one.arrives = one.made + one.takes;
        if (!gy_vec_push(in, one))
            return false;
    }
    return true;
}

static bool overlaps(const gy_access *a, const gy_access *b, int64_t *first, int64_t *last)
{
    *first = a->first > b->first ? a->first : b->first;
    *last = a->last < b->last ? a->last : b->last;
    return *first < *last;
}

/* The rows that the task reads and `from` made: "e2_9, x{0:4}". */
static void add_rows(gy_text *to, const gy_plan *p, uint32_t task, uint32_t from)
{
    const gy_flow *f = p->flow;
    const char *between = "";
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses; k++)
        for (uint32_t j = 0; j < gy_plan_node(p, from)->accesses; j++) {
            size_t x = f->task[task].access + k, y = f->task[from].access + j;
            const gy_access *read = gy_flow_access_of(p->graph, f, x), *made = gy_flow_access_of(p->graph, f, y);
            int64_t first, last;
            if (f->access[x].value != f->access[y].value || read->mode == GANTRY_WRITE || made->mode == GANTRY_READ ||
                !overlaps(read, made, &first, &last))
                continue;
            gy_text_add(to, between);
            gy_rows_text(to, p->graph, read->buffer, first, last);
            between = ", ";
        }
}

static bool is_made(const gy_plan *p, uint32_t task, size_t read)
{
    const gy_flow *f = p->flow;
    int64_t first, last;
    for (const gy_dep *d = gy_deps_begin(f, task); d < gy_deps_end(f, task); d++)
        for (uint32_t j = 0; j < gy_plan_node(p, d->from)->accesses; j++) {
            size_t y = f->task[d->from].access + j;
            if (f->access[y].value == f->access[read].value && gy_flow_access_of(p->graph, f, y)->mode != GANTRY_READ &&
                overlaps(gy_flow_access_of(p->graph, f, read), gy_flow_access_of(p->graph, f, y), &first, &last))
                return true;
        }
    return false;
}

/* The accesses that read bound inputs which no task has changed. */
static void add_bound(gy_text *to, const gy_plan *p, uint32_t task)
{
    const gy_flow *f = p->flow;
    const char *between = "";
    for (uint32_t k = 0; k < gy_plan_node(p, task)->accesses; k++) {
        size_t x = f->task[task].access + k;
        const gy_access *a = gy_flow_access_of(p->graph, f, x);
        bool bound = f->value[f->access[x].value].generation == 0 &&
                     p->graph->buffers.at[a->buffer].cls == GANTRY_INPUT && a->mode != GANTRY_WRITE;
        if (!bound || a->first == a->last || is_made(p, task, x))
            continue;
        gy_text_add(to, between);
        gy_access_text(to, p->graph, a);
        between = ", ";
    }
}

static void add_input(gy_table *t, gy_text *to, const gy_plan *p, uint32_t task, const gy_input *in)
{
    char size[32];
    gy_text rows = { 0 };
    bool data = !in->dep || in->dep->kinds & GY_DEP_DATA;
    gy_text_add(&rows, "");
    if (!in->dep)
        add_bound(&rows, p, task);
    else if (data)
        add_rows(&rows, p, task, in->dep->from);
    to->failed = to->failed || rows.failed;
    gy_table_cell(t, "%s", in->dep ? gy_plan_node(p, in->dep->from)->id : "bound inputs");
    gy_table_cell(t, "%s %s", in->dep ? "on" : "in",
                  in->dep ? device_id(p, p->placed.device[in->dep->from]) : memory_id(p, 0));
    gy_table_cell(t, in->dep ? "ends %.3f us" : "%.3f us", gy_ticks_to_us(in->made));
    gy_table_cell(t, "%s", data ? gy_bytes_text(size, sizeof size, (uint64_t)in->bytes) : "");
    gy_table_cell(t, "%s", !data ? "order only" : rows.failed || !rows.at ? "" : rows.at);
    gy_text_free(&rows);
}

void gy_explain_inputs(gy_text *to, const gy_plan *p, uint32_t task)
{
    gy_table t = { .align = "llrrl" };
    gy_inputs in = { 0 };
    if (!gy_inputs_find(&in, p, task, 0))
        to->failed = true;
    gy_text_add(to, in.count ? "\ninputs\n" : "\nno inputs\n");
    for (size_t i = 0; i < in.count; i++)
        add_input(&t, to, p, task, &in.at[i]);
    gy_table_print(&t, to);
    gy_vec_free(&in);
}

/* ---- their ways ---- */

void gy_inputs_route(gy_text *to, const gy_plan *p, uint32_t from, uint32_t memory)
{
    const gy_route *r = gy_machine_route(p->machine, from, memory);
    if (from == memory)
        gy_text_printf(to, "in %s", memory_id(p, memory));
    else if (r->kind == GY_ROUTE_RELAY || r->kind == GY_ROUTE_STAGED)
        gy_text_printf(to, "%s -> %s -> %s", memory_id(p, from), memory_id(p, r->via), memory_id(p, memory));
    else
        gy_text_printf(to, "%s -> %s", memory_id(p, from), memory_id(p, memory));
}

size_t gy_inputs_last(const gy_inputs *in)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < in->count; i++)
        if (last == SIZE_MAX || in->at[i].arrives > in->at[last].arrives)
            last = i;
    return last;
}

static void add_ways(gy_table *t, gy_text *to, const gy_plan *p, const gy_try *try, gy_inputs *in)
{
    uint32_t memory = p->machine->device[try->device].memory;
    const char *name = device_id(p, try->device);
    size_t last = gy_inputs_last(in);
    for (size_t i = 0; i < in->count; i++) {
        const gy_input *one = &in->at[i];
        gy_text route = { 0 };
        if (in->count > SHOWN && i != last)
            continue;
        if (one->dep && !(one->dep->kinds & GY_DEP_DATA))
            gy_text_add(&route, "order only");
        else
            gy_inputs_route(&route, p, one->memory, memory);
        to->failed = to->failed || route.failed;
        gy_table_cell(t, in->count > SHOWN ? "%s, last of %zu" : "%s", name, in->count);
        gy_table_cell(t, "%s", one->dep ? gy_plan_node(p, one->dep->from)->id : "bound inputs");
        gy_table_cell(t, "%s", route.failed ? "" : route.at);
        gy_table_cell(t, "%.3f us", gy_ticks_to_us(one->takes));
        gy_table_cell(t, "there at %.3f us", gy_ticks_to_us(one->arrives));
        gy_table_cell(t, "%s", i == last && in->count > 1 ? "last" : "");
        gy_text_free(&route);
        name = in->count > SHOWN ? name : "";
    }
}

void gy_explain_transfers(gy_text *to, const gy_plan *p, uint32_t task)
{
    gy_table t = { .align = "lllrrl" };
    gy_inputs in = { 0 };
    for (size_t i = 0; i < p->placed.tries.count; i++) {
        if (!gy_inputs_find(&in, p, task, p->machine->device[p->placed.tries.at[i].device].memory))
            to->failed = true;
        add_ways(&t, to, p, &p->placed.tries.at[i], &in);
    }
    if (t.count)
        gy_text_add(to, "\ntransfers, each alone on its route\n");
    gy_table_print(&t, to);
    gy_vec_free(&in);
}
