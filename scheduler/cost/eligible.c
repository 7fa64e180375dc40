/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The devices that may run a node: by its kind, its kernel's flags, `on`, and groups that are kept together or apart.
 * The answer is GY_TICKS_MAX in the table of times.
 */
#include "scheduler/cost/apart.h"

#include "base/error.h"
#include "scheduler/cost/cost.h"
#include <string.h>

#define TICKS_PER_DAY (INT64_C(86400) * 1000000000000) /* a tick is a picosecond */

static gy_ticks *time_of(gy_plan *p, uint32_t node, uint32_t device)
{
    return &p->cost.time[(size_t)node * p->devices + device];
}

static uint32_t count_allowed(const gy_plan *p, uint32_t node, uint32_t last)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < last; d++)
        count += gy_plan_time(p, node, d) < GY_TICKS_MAX;
    return count;
}

static void forbid(gy_plan *p, uint32_t node, uint32_t first, uint32_t last)
{
    for (uint32_t d = first; d < last; d++)
        *time_of(p, node, d) = GY_TICKS_MAX;
}

static bool can_run(const gy_plan *p, const gy_node *n, const gy_device *d)
{
    uint32_t flags = 0;
    if (n->kind == GY_NODE_HOST)
        return !d->gpu;
    if (n->kernel != GY_NONE && n->kind == GY_NODE_KERNEL)
        flags = p->graph->kernels.at[n->kernel].manifest->flags;
    return !(d->gpu ? flags & GANTRY_KERNEL_NO_GPU : flags & GANTRY_KERNEL_NO_CPU);
}

static gantry_status fail_long(const gy_plan *p, const gy_node *n, gantry_error *err)
{
    return gy_graph_fail(p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                         "node \"%s\" takes longer than %d days, the limit of times, wherever it may run on machine "
                         "\"%s\"; make its buffers or its cost smaller",
                         n->id, (int)(GY_TICKS_MAX / TICKS_PER_DAY), p->machine->name);
}

/* No device of the machine is of a kind that the node's kernel has code for. */
static gantry_status fail_kind(const gy_plan *p, const gy_node *n, gantry_error *err)
{
    bool cpu = false, gpu = false;
    for (uint32_t d = 0; d < p->devices; d++)
        *(p->machine->device[d].gpu ? &gpu : &cpu) = true;
    return gy_graph_fail(
        p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
        "kernel \"%s\" of node \"%s\" has no version for %s, and machine \"%s\" has nothing else; give "
        "it one (%s), or choose another machine",
        p->graph->kernels.at[n->kernel].manifest->name, n->id,
        cpu && gpu ? "CPUs and none for GPUs"
        : gpu      ? "GPUs"
                   : "CPUs",
        p->machine->name, gpu ? "\"cuda\"" : "\"host\"");
}

static gantry_status allow_kind(gy_plan *p, uint32_t node, gantry_error *err)
{
    const gy_node *n = &p->graph->nodes.at[node];
    bool kind = false;
    for (uint32_t d = 0; d < p->devices; d++)
        if (can_run(p, n, &p->machine->device[d]))
            kind = true;
        else
            *time_of(p, node, d) = GY_TICKS_MAX;
    if (count_allowed(p, node, p->devices))
        return GANTRY_OK;
    if (kind)
        return fail_long(p, n, err);
    if (n->kind != GY_NODE_HOST)
        return fail_kind(p, n, err);
    return gy_graph_fail(
        p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
        "node \"%s\" is a host call, which needs a CPU device, and machine \"%s\" has none; add one of "
        "type \"cpu\"",
        n->id, p->machine->name);
}

/* ---- on ---- */

static bool lookup_devices(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    const gy_plan *p = context;
    if (strcmp(name, "devices") != 0)
        return false;
    *integer = p->workers;
    *real = p->workers;
    *is_real = false;
    return true;
}

static gantry_status bad_index(const gy_plan *p, const gy_node *n, const gy_expr *expr, int64_t index,
                               gantry_error *err)
{
    gy_text on = { 0 };
    gy_expr_print(&on, expr);
    gantry_status status =
        on.failed ? gy_fail_nomem(err)
                  : gy_graph_fail(p->graph, n->origin, err, GANTRY_E_GRAPH,
                                  "on \"%s\" of node \"%s\" is device %lld, but machine \"%s\" has devices 0 to %u; "
                                  "use %% devices to wrap around",
                                  on.at, n->id, (long long)index, p->machine->name, p->workers - 1);
    gy_text_free(&on);
    return status;
}

/* `on` as an expression: the index of a worker. */
static gantry_status on_index(gy_plan *p, const gy_node *n, const gy_expr *expr, uint32_t *device, gantry_error *err)
{
    int64_t index = 0;
    gantry_error inner = { 0 };
    if (gy_expr_integer(expr, lookup_devices, p, &index, GANTRY_E_GRAPH, NULL, &inner))
        return gy_graph_fail(p->graph, n->origin, err, GANTRY_E_GRAPH, "on of node \"%s\": %s", n->id, inner.text);
    if (index < 0 || index >= p->workers)
        return bad_index(p, n, expr, index, err);
    *device = (uint32_t)index;
    return GANTRY_OK;
}

static gantry_status on_unknown(gy_plan *p, const gy_node *n, const char *on, gantry_error *err)
{
    gy_near near = { 0 };
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_near_offer(&near, on, p->machine->device[d].id);
        gy_near_offer(&near, on, p->machine->device[d].kind);
    }
    char meant[GY_MEANT_TEXT];
    gy_text ids = { 0 };
    gy_machine_list_devices(&ids, p->machine);
    gantry_status status =
        ids.failed
            ? gy_fail_nomem(err)
            : gy_graph_fail(p->graph, n->origin, err, GANTRY_E_GRAPH,
                            "on \"%s\" of node \"%s\" is no device id, kind or expression over devices of machine "
                            "\"%s\"%s: it has %s; write one of them, an index from 0 to %u, or an "
                            "expression such as i %% devices",
                            on, n->id, p->machine->name, gy_meant_text(meant, near.best), ids.at, p->workers - 1);
    gy_text_free(&ids);
    return status;
}

/* The device or devices that `on` names are of a kind that the node cannot run on, or take too long. */
static gantry_status fail_on(const gy_plan *p, uint32_t node, const char *on, bool gpu, gantry_error *err)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const char *take = "drop \"on\" or choose another device";
    if (n->kind == GY_NODE_HOST)
        return gy_graph_fail(p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                             "node \"%s\" is put on \"%s\", a GPU, and is a host call, which needs a CPU device; %s",
                             n->id, on, take);
    const gy_device kind = { .gpu = gpu };
    if (!can_run(p, n, &kind))
        return gy_graph_fail(
            p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
            "node \"%s\" is put on \"%s\", a %s, for which its kernel \"%s\" has no version; give it one "
            "(%s), or %s",
            n->id, on, gpu ? "GPU" : "CPU", p->graph->kernels.at[n->kernel].manifest->name,
            gpu ? "\"cuda\"" : "\"host\"", take);
    return gy_graph_fail(p->graph, n->origin, err, GANTRY_E_UNSUPPORTED,
                         "node \"%s\" is put on \"%s\", which cannot run it; %s", n->id, on, take);
}

static gantry_status narrow_on(gy_plan *p, uint32_t node, const gy_node_extra *x, gantry_error *err)
{
    const gy_node *n = &p->graph->nodes.at[node];
    uint32_t only = x->on ? gy_machine_find_device(p->machine, x->on) : GY_MACHINE_NONE;
    bool kind = false, gpu = only != GY_MACHINE_NONE && p->machine->device[only].gpu;
    for (uint32_t d = 0; d < p->devices && only == GY_MACHINE_NONE && x->on; d++)
        if (strcmp(p->machine->device[d].kind, x->on) == 0) {
            kind = true;
            gpu = p->machine->device[d].gpu;
        }
    if (only == GY_MACHINE_NONE && !kind) {
        if (!x->on_expr)
            return on_unknown(p, n, x->on, err);
        GY_TRY(on_index(p, n, x->on_expr, &only, err));
        gpu = p->machine->device[only].gpu;
    }
    for (uint32_t d = 0; d < p->devices; d++)
        if (kind ? strcmp(p->machine->device[d].kind, x->on) != 0 : d != only)
            *time_of(p, node, d) = GY_TICKS_MAX;
    if (count_allowed(p, node, p->devices))
        return GANTRY_OK;
    return fail_on(p, node, x->on ? x->on : p->machine->device[only].id, gpu, err);
}

gantry_status gy_plan_on_rank(gy_plan *p, uint32_t node, uint32_t rank, uint32_t *device, gantry_error *err)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_rank_place *place = &gy_plan_extra(p, node)->rank_on.at[rank];
    *device = place->on ? gy_machine_find_device(p->machine, place->on) : GY_MACHINE_NONE;
    if (place->on_expr && *device == GY_MACHINE_NONE)
        return on_index(p, n, place->on_expr, device, err);
    if (*device < p->workers)
        return GANTRY_OK;
    return gy_graph_fail_in(p->graph, n->origin, "/on", err, GANTRY_E_GRAPH,
                            "rank %u of collective \"%s\" is on \"%s\"; the place of a rank is the id of a device of "
                            "machine \"%s\" that takes any work, or an index from 0 to %u",
                            rank, n->id, place->on, p->machine->name, p->workers - 1);
}

static gantry_status eligible_node(gy_plan *p, uint32_t node, gantry_error *err)
{
    const gy_node_extra *x = gy_plan_extra(p, node);
    GY_TRY(allow_kind(p, node, err));
    if (x && (x->on || x->on_expr))
        return narrow_on(p, node, x, err);
    /* Devices that only take host calls are for host calls, and for what no other device can run. */
    if (p->graph->nodes.at[node].kind != GY_NODE_HOST && count_allowed(p, node, p->workers))
        forbid(p, node, p->workers, p->devices);
    return GANTRY_OK;
}

/* ---- with, apart ---- */

static uint32_t find_group(gy_plan *p, uint32_t node)
{
    while (p->cost.group[node] != node) {
        p->cost.group[node] = p->cost.group[p->cost.group[node]];
        node = p->cost.group[node];
    }
    return node;
}

static void join_groups(gy_plan *p, uint32_t a, uint32_t b)
{
    a = find_group(p, a);
    b = find_group(p, b);
    p->cost.group[a > b ? a : b] = a > b ? b : a;
}

static void find_groups(gy_plan *p)
{
    for (uint32_t n = 0; n < p->graph->nodes.count; n++) {
        const gy_node_extra *x = gy_plan_extra(p, n);
        for (size_t i = 0; x && i < x->with.count; i++)
            if (gy_nodes_have_one_device(p->graph, n, x->with.at[i])) {
                join_groups(p, n, x->with.at[i]);
                p->cost.pinned[n] = p->cost.pinned[x->with.at[i]] = 1;
            }
        for (size_t i = 0; x && i < x->apart.count; i++)
            if (gy_nodes_have_one_device(p->graph, n, x->apart.at[i]))
                p->cost.pinned[n] = p->cost.pinned[x->apart.at[i]] = 1;
    }
    for (uint32_t n = 0; n < p->graph->nodes.count; n++)
        p->cost.group[n] = find_group(p, n);
}

/* A group runs where all of its nodes can: the first node's row of the table speaks for all. */
static gantry_status meet_group(gy_plan *p, uint32_t node, gantry_error *err)
{
    uint32_t first = p->cost.group[node];
    const gantry_graph *g = p->graph;
    for (uint32_t d = 0; d < p->devices; d++)
        if (gy_plan_time(p, node, d) >= GY_TICKS_MAX)
            *time_of(p, first, d) = GY_TICKS_MAX;
    if (count_allowed(p, first, p->devices))
        return GANTRY_OK;
    return gy_graph_fail(g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                         "no device of machine \"%s\" can run both \"%s\" and \"%s\", which are kept together; "
                         "change \"with\" or \"on\"",
                         p->machine->name, g->nodes.at[first].id, g->nodes.at[node].id);
}

static gantry_status add_apart(gy_plan *p, uint32_t a, uint32_t b, gantry_error *err)
{
    uint32_t *old = p->cost.apart[a], count = old ? old[0] : 0;
    uint32_t *list = gy_arena_alloc(&p->arena, (count + 2) * sizeof *list);
    if (!list)
        return gy_fail_nomem(err);
    if (count)
        memcpy(list, old, (count + 1) * sizeof *list);
    list[0] = count + 1;
    list[count + 1] = b;
    p->cost.apart[a] = list;
    return GANTRY_OK;
}

static gantry_status apart_groups(gy_plan *p, uint32_t node, uint32_t other, gantry_error *err)
{
    uint32_t a = p->cost.group[node], b = p->cost.group[other];
    const gantry_graph *g = p->graph;
    if (a == b)
        return gy_graph_fail(g, g->nodes.at[node].origin, err, GANTRY_E_GRAPH,
                             "nodes \"%s\" and \"%s\" are kept together and apart; drop one of \"with\" and \"apart\"",
                             g->nodes.at[node].id, g->nodes.at[other].id);
    GY_TRY(add_apart(p, a, b, err));
    return add_apart(p, b, a, err);
}

static gantry_status make_groups(gy_plan *p, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    size_t nodes = p->graph->nodes.count;
    for (uint32_t n = 0; n < nodes && !status; n++)
        if (p->cost.group[n] != n)
            status = meet_group(p, n, err);
    for (uint32_t n = 0; n < nodes; n++) /* and back: every member knows what the group can */
        for (uint32_t d = 0; d < p->devices && p->cost.group[n] != n; d++)
            if (gy_plan_time(p, p->cost.group[n], d) >= GY_TICKS_MAX)
                *time_of(p, n, d) = GY_TICKS_MAX;
    for (uint32_t n = 0; n < nodes && !status; n++) {
        const gy_node_extra *x = gy_plan_extra(p, n);
        for (size_t i = 0; x && i < x->apart.count && !status; i++)
            if (gy_nodes_have_one_device(p->graph, n, x->apart.at[i]))
                status = apart_groups(p, n, x->apart.at[i], err);
    }
    return status ? status : gy_apart_plan(p, err);
}

bool gy_plan_is_tied(const gy_plan *p, uint32_t node)
{
    const gy_node_extra *x = gy_plan_extra(p, node);
    return gy_node_ranks(p->graph, node) == 1 && (p->cost.pinned[node] || (x && (x->on || x->on_expr)));
}

gantry_status gy_plan_eligible(gy_plan *p, gantry_error *err)
{
    size_t nodes = p->graph->nodes.count;
    p->cost.group = gy_calloc(nodes + 1, sizeof *p->cost.group);
    p->placed.group_device = gy_calloc(nodes + 1, sizeof *p->placed.group_device);
    p->cost.pinned = gy_calloc(nodes + 1, sizeof *p->cost.pinned);
    p->cost.apart = gy_calloc(nodes + 1, sizeof *p->cost.apart);
    if (!p->cost.group || !p->placed.group_device || !p->cost.pinned || !p->cost.apart)
        return gy_fail_nomem(err);
    for (uint32_t n = 0; n < nodes; n++) {
        p->cost.group[n] = n;
        p->placed.group_device[n] = GY_NONE;
    }
    find_groups(p);
    for (uint32_t n = 0; n < nodes; n++)
        if (p->graph->nodes.at[n].kind != GY_NODE_COLLECTIVE || gy_plan_is_tied(p, n))
            GY_TRY(eligible_node(p, n, err));
    return make_groups(p, err);
}
