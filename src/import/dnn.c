/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Device placement of neural networks (J. Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph
 * Operators, NeurIPS 2020; format at https://github.com/msr-fiddle/dnn-partitioning). Accelerators ("FPGAs") with
 * memories of one size hang on the memory of the CPUs; a node's output goes from there to there, at a cost of its own
 * per crossing, once to each accelerator that wants it. Nodes of one colour share a device. `isBackwardNode` and
 * anything that the format does not define are not looked at.
 */
#include "import/import.h"

#include "base/error.h"
#include "base/map.h"
#include <math.h>
#include <stdio.h>

#define COST_TOLERANCE 1e-6 /* the original programs' */

typedef struct dnn {
    gy_import *in;
    gy_map by_id;   /* id -> task */
    gy_map colours; /* colour -> its first task */
    double *cost;   /* per task: of its output; negative: no edge so far */
    uint32_t *item; /* per task: its output; GY_IMPORT_NONE */
    gantry_error *err;
} dnn;

/* ---- nodes ---- */

/* true, false, 1 and 0 all occur. */
static gantry_status read_flag(const dnn *d, const gy_json_at *at, const char *key, bool *out)
{
    gy_json_at member = gy_json_key(at, key);
    if (!member.value)
        return gy_json_fail(d->err, GANTRY_E_GRAPH, at, "missing key \"%s\": give true or false", key);
    bool is_number =
        json_is_integer(member.value) && json_integer_value(member.value) >= 0 && json_integer_value(member.value) <= 1;
    if (!is_number && !json_is_boolean(member.value))
        return gy_json_fail(d->err, GANTRY_E_GRAPH, &member, "\"%s\" must be true, false, 1 or 0, not %s", key,
                            json_is_integer(member.value) ? "another number" : gy_json_kind(member.value));
    *out = is_number ? json_integer_value(member.value) == 1 : json_is_true(member.value);
    return GANTRY_OK;
}

static gantry_status read_numbers(dnn *d, const gy_json_at *at, gy_import_task *t)
{
    double size = 0;
    bool supported = true;
    gantry_status status =
        gy_json_number(at, "cpuLatency", true, 0, 0, GY_IMPORT_MOST_US, &t->cpu, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = gy_json_number(at, "fpgaLatency", true, 0, 0, GY_IMPORT_MOST_US, &t->time, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = gy_json_number(at, "size", false, 0, 0, GY_IMPORT_MOST_BYTES, &size, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = read_flag(d, at, "supportedOnFpga", &supported);
    t->resident = (int64_t)ceil(size);
    t->cpu_only = !supported;
    return status;
}

static gantry_status join_colour(dnn *d, const gy_json_at *at, uint32_t task)
{
    int64_t colour;
    uint64_t first;
    if (!gy_json_key(at, "colorClass").value)
        return GANTRY_OK;
    gantry_status status =
        gy_json_int(at, "colorClass", true, 0, INT64_MIN, INT64_MAX, &colour, GANTRY_E_GRAPH, d->err);
    if (status)
        return status;
    if (gy_map_get(&d->colours, (uint64_t)colour, &first))
        d->in->tasks.at[task].with = (uint32_t)first;
    else if (!gy_map_put(&d->colours, (uint64_t)colour, task))
        return gy_fail_nomem(d->err);
    return GANTRY_OK;
}

static gantry_status add_node(dnn *d, const gy_json_at *at, int64_t id, const char *name)
{
    char fallback[32];
    uint64_t other;
    if (gy_map_get(&d->by_id, (uint64_t)id, &other))
        return gy_json_fail(d->err, GANTRY_E_GRAPH, at, "id %lld is that of node %llu already; ids are unique",
                            (long long)id, (unsigned long long)other);
    snprintf(fallback, sizeof fallback, "node%lld", (long long)id);
    gy_import_task *t = gy_import_add_task(d->in, name && *name ? name : fallback);
    if (!t || !(t->pointer = gy_import_pointer(d->in, at)) ||
        !gy_map_put(&d->by_id, (uint64_t)id, d->in->tasks.count - 1))
        return gy_fail_nomem(d->err);
    return GANTRY_OK;
}

static gantry_status read_node(dnn *d, const gy_json_at *at)
{
    int64_t id = 0;
    const char *name = NULL;
    GY_TRY(gy_import_object(at, "a node", d->err));
    GY_TRY(gy_json_int(at, "id", true, 0, INT64_MIN, INT64_MAX, &id, GANTRY_E_GRAPH, d->err));
    GY_TRY(gy_json_string(at, "name", false, NULL, &name, GANTRY_E_GRAPH, d->err));
    GY_TRY(add_node(d, at, id, name));
    GY_TRY(read_numbers(d, at, gy_vec_last(&d->in->tasks)));
    GY_TRY(join_colour(d, at, (uint32_t)d->in->tasks.count - 1));
    if (d->in->cpus == 0 && gy_vec_last(&d->in->tasks)->cpu_only)
        GY_TRY(gy_json_fail(d->err, GANTRY_E_GRAPH, at,
                            "node \"%s\" is not supported on accelerators, and \"maxCPUs\" is 0; give it a CPU",
                            gy_vec_last(&d->in->tasks)->id));
    return GANTRY_OK;
}

/* ---- edges ---- */

static gantry_status read_end(const dnn *d, const gy_json_at *at, const char *key, uint32_t *task)
{
    int64_t id = 0;
    uint64_t found;
    GY_TRY(gy_json_int(at, key, true, 0, INT64_MIN, INT64_MAX, &id, GANTRY_E_GRAPH, d->err));
    if (!gy_map_get(&d->by_id, (uint64_t)id, &found)) {
        gy_json_at member = gy_json_key(at, key);
        return gy_json_fail(d->err, GANTRY_E_GRAPH, &member, "no node has the id %lld", (long long)id);
    }
    *task = (uint32_t)found;
    return GANTRY_OK;
}

static gantry_status add_output(dnn *d, uint32_t from, double cost)
{
    const char *name = gy_arena_printf(&d->in->arena, "%s.out", d->in->tasks.at[from].id);
    d->cost[from] = cost;
    if (cost == 0)
        return GANTRY_OK;
    if (!name || !gy_import_add_item(d->in, name, from, cost))
        return gy_fail_nomem(d->err);
    d->item[from] = (uint32_t)d->in->items.count - 1;
    return GANTRY_OK;
}

static gantry_status read_edge(dnn *d, const gy_json_at *at)
{
    uint32_t from = 0, to = 0;
    double cost = 0;
    GY_TRY(gy_import_object(at, "an edge", d->err));
    GY_TRY(read_end(d, at, "sourceId", &from));
    GY_TRY(read_end(d, at, "destId", &to));
    GY_TRY(gy_json_number(at, "cost", true, 0, 0, GY_IMPORT_MOST_US, &cost, GANTRY_E_GRAPH, d->err));
    if (d->cost[from] < 0)
        GY_TRY(add_output(d, from, cost));
    if (fabs(d->cost[from] - cost) > COST_TOLERANCE)
        return gy_json_fail(
            d->err, GANTRY_E_GRAPH, at,
            "\"cost\" is %.15g, but an earlier edge from \"%s\" says %.15g; it is the cost of the node's "
            "output, the same for all edges",
            cost, d->in->tasks.at[from].id, d->cost[from]);
    bool ok = d->item[from] == GY_IMPORT_NONE ? gy_import_add_order(d->in, from, to)
                                              : gy_import_add_read(d->in, to, d->item[from]);
    return ok ? GANTRY_OK : gy_fail_nomem(d->err);
}

/* ---- all of it ---- */

static gantry_status read_machine(dnn *d, const gy_json_at *root)
{
    gy_import *in = d->in;
    int64_t fpgas = 0, cpus = 0;
    double size = 0;
    gantry_status status =
        gy_json_number(root, "maxSizePerFPGA", true, 0, 1, GY_IMPORT_MOST_BYTES, &size, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = gy_json_int(root, "maxFPGAs", true, 0, 0, 4096, &fpgas, GANTRY_E_GRAPH, d->err);
    if (!status)
        status = gy_json_int(root, "maxCPUs", true, 0, 0, 4096, &cpus, GANTRY_E_GRAPH, d->err);
    if (!status && fpgas + cpus == 0)
        status =
            gy_json_fail(d->err, GANTRY_E_GRAPH, root, "\"maxFPGAs\" and \"maxCPUs\" are 0; give at least one device");
    in->capacity = (uint64_t)size;
    in->accelerators = (uint32_t)(in->options.devices > 0 ? in->options.devices : fpgas);
    in->cpus = (uint32_t)cpus;
    return status;
}

static gantry_status read_all(dnn *d, const gy_json_at *root)
{
    gy_json_at nodes, edges;
    gantry_status status = gy_import_object(root, "the file", d->err);
    if (!status)
        status = read_machine(d, root);
    if (!status)
        status = gy_import_array(root, "nodes", &nodes, d->err);
    if (!status)
        status = gy_import_array(root, "edges", &edges, d->err);
    if (status)
        return status;
    for (size_t i = 0; i < json_array_size(nodes.value) && !status; i++) {
        gy_json_at at = gy_json_item(&nodes, i);
        status = read_node(d, &at);
    }
    size_t count = d->in->tasks.count;
    d->cost = gy_calloc(count + 1, sizeof *d->cost);
    d->item = gy_calloc(count + 1, sizeof *d->item);
    if (!status && (!d->cost || !d->item))
        status = gy_fail_nomem(d->err);
    for (size_t i = 0; i < count && !status; i++) {
        d->cost[i] = -1;
        d->item[i] = GY_IMPORT_NONE;
    }
    for (size_t i = 0; i < json_array_size(edges.value) && !status; i++) {
        gy_json_at at = gy_json_item(&edges, i);
        status = read_edge(d, &at);
    }
    return status;
}

gantry_status gy_import_dnn(gy_import *in, gantry_error *err)
{
    dnn d = { .in = in, .err = err };
    json_t *root;
    in->unit_us = 1;
    in->by_kind = true;
    in->has_pointers = true;
    gantry_status status = gy_json_parse(&root, in->text, in->length, in->source, "nodes", err);
    if (status)
        return status;
    gy_json_at at = { NULL, NULL, 0, root };
    status = read_all(&d, &at);
    json_decref(root);
    gy_map_free(&d.by_id);
    gy_map_free(&d.colours);
    gy_free(d.cost);
    gy_free(d.item);
    return status;
}
