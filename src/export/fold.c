/* SPDX-License-Identifier: Apache-2.0 */
#include "export/fold.h"

#include "base/error.h"

#include <string.h>

enum { DEFAULT_NODES = 100 };

/* "layer[*].gemm[*]" of "layer[3].gemm[1,2]#4": indices, and the numbers of equal ids, say which of the family it is.
 */
static void family_of(gy_text *to, const char *id)
{
    while (*id) {
        size_t plain = strcspn(id, "[#");
        gy_text_add_n(to, id, plain);
        id += plain;
        if (*id == '[') {
            gy_text_add(to, "[*]");
            id += strcspn(id, "]");
            id += *id == ']';
        } else if (*id == '#') {
            id += 1 + strspn(id + 1, "0123456789");
        }
    }
}

/* ---- which nodes ---- */

/* Nodes one dependency further than those marked `from`, in either direction. */
static void mark_neighbours(const gantry_graph *g, uint8_t *marks, uint8_t from)
{
    const gy_flow *f = g->flow;
    for (uint32_t t = 0; t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            uint32_t a = f->task[d->from].node, b = f->task[t].node;
            if (marks[a] == from && !marks[b])
                marks[b] = (uint8_t)(from + 1);
            else if (marks[b] == from && !marks[a])
                marks[a] = (uint8_t)(from + 1);
        }
}

/* `marks` has a byte for each node, which is not 0 for those of the picture. */
static gantry_status mark_wanted(const gantry_graph *g, const gantry_drawing_options *o, uint8_t *marks,
                                 gantry_error *err)
{
    if (!o->near) {
        memset(marks, 1, g->nodes.count);
        return GANTRY_OK;
    }
    gy_near near = { 0 };
    bool found = false;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        gy_near_offer(&near, o->near, g->nodes.at[i].id);
        marks[i] = strcmp(g->nodes.at[i].id, o->near) == 0;
        found = found || marks[i];
    }
    if (!found && near.best)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "graph \"%s\" has no node \"%s\" (did you mean \"%s\"?)", g->name,
                       o->near, near.best);
    if (!found)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "graph \"%s\" has no node \"%s\"; give the id of one", g->name,
                       o->near);
    for (int32_t step = 0; step < o->distance; step++)
        mark_neighbours(g, marks, (uint8_t)(step + 1));
    return GANTRY_OK;
}

/* ---- clusters ---- */

/* The name of the node's cluster; false where it is in none. */
static bool cluster_name(gy_text *to, const gy_fold *fold, const gantry_drawing_options *o, uint32_t node)
{
    gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
    if (fold->by_family)
        family_of(to, fold->graph->nodes.at[node].id);
    if (fold->by_device) {
        int device = gantry_schedule_device_of(o->schedule, (gantry_node){ .id = node });
        if (device < 0 || gantry_machine_device(gantry_schedule_machine(o->schedule), (size_t)device, &d, NULL))
            return false;
        gy_text_add(to, d.id);
    }
    return fold->by_family || fold->by_device;
}

static uint32_t cluster_of(gy_fold *fold, const gantry_drawing_options *o, uint32_t node, bool *failed)
{
    gy_text name = { 0 };
    uint32_t cluster = GY_NONE;
    if (cluster_name(&name, fold, o, node) && !name.failed)
        cluster = gy_names_add(&fold->clusters, name.at ? name.at : "", NULL);
    *failed = *failed || name.failed || (name.at && cluster == GY_NONE);
    gy_text_free(&name);
    return cluster;
}

/* ---- boxes ---- */

/* A number for all nodes of one family, loop and cluster. */
static uint32_t family_number(gy_fold *fold, uint32_t node, uint32_t cluster)
{
    const gy_node *n = &fold->graph->nodes.at[node];
    gy_text key = { 0 };
    family_of(&key, n->id);
    gy_text_printf(&key, "\n%d %u %u %u", n->kind, n->loop, n->inner, cluster);
    uint32_t number = key.failed ? GY_NO_NAME : gy_names_add(&fold->families, key.at, NULL);
    gy_text_free(&key);
    return number;
}

static bool add_box(gy_fold *fold, uint32_t node, uint32_t cluster)
{
    gy_fold_box box = { .first = node, .nodes = 1, .cluster = cluster, .name = fold->graph->nodes.at[node].id };
    fold->of[node] = (uint32_t)fold->box.count;
    fold->drawn++;
    return gy_vec_push(&fold->box, box);
}

/* The nodes before the first ones that there is no room for are drawn. */
static bool add_boxes(gy_fold *fold, const gantry_drawing_options *o, const uint8_t *marks, uint32_t most)
{
    uint32_t *box_of_family = fold->folded ? gy_calloc(fold->graph->nodes.count, sizeof *box_of_family) : NULL;
    bool failed = fold->folded && !box_of_family;
    for (uint32_t i = 0; i < fold->graph->nodes.count && !failed; i++) {
        fold->of[i] = GY_NONE;
        if (!marks[i])
            continue;
        uint32_t cluster = cluster_of(fold, o, i, &failed);
        uint32_t family = fold->folded && !failed ? family_number(fold, i, cluster) : GY_NONE;
        failed = failed || (fold->folded && family == GY_NO_NAME);
        if (!failed && family != GY_NONE && box_of_family[family]) {
            fold->of[i] = box_of_family[family] - 1;
            fold->box.at[fold->of[i]].nodes++;
            fold->drawn++;
        } else if (!failed && fold->box.count < most) {
            failed = !add_box(fold, i, cluster);
            if (!failed && family != GY_NONE)
                box_of_family[family] = (uint32_t)fold->box.count;
        }
    }
    gy_free(box_of_family);
    return !failed;
}

/* Families of several nodes are called after what they have in common: the key up to its first line. */
static bool name_families(gy_fold *fold)
{
    for (size_t i = 0; i < fold->box.count; i++) {
        gy_text name = { 0 };
        if (fold->box.at[i].nodes == 1)
            continue;
        family_of(&name, fold->graph->nodes.at[fold->box.at[i].first].id);
        uint32_t number = name.failed ? GY_NO_NAME : gy_names_add(&fold->families, name.at ? name.at : "", NULL);
        gy_text_free(&name);
        if (number == GY_NO_NAME)
            return false;
        fold->box.at[i].name = gy_names_at(&fold->families, number);
    }
    return true;
}

static gantry_status check_options(const gantry_graph *g, const gantry_drawing_options *o, gantry_error *err)
{
    if (o->max_nodes < 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "max_nodes of a drawing is %d; give how many nodes are drawn one by one, or 0 for the default",
                       (int)o->max_nodes);
    if (o->distance < 0 || o->distance > 100)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "distance of a drawing is %d; it must be from 0 to 100 dependencies from the node",
                       (int)o->distance);
    if (o->clusters < GANTRY_CLUSTERS_LOOPS || o->clusters > GANTRY_CLUSTERS_FAMILIES)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "clusters of a drawing is %d; it must be from %d to %d",
                       (int)o->clusters, GANTRY_CLUSTERS_LOOPS, GANTRY_CLUSTERS_FAMILIES);
    if (o->clusters == GANTRY_CLUSTERS_DEVICES && !o->schedule)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a drawing with a cluster for each device needs a schedule of graph \"%s\"; give `schedule`",
                       g->name);
    return GANTRY_OK;
}

gantry_status gy_fold_make(gy_fold *fold, const gantry_graph *graph, const gantry_drawing_options *options,
                           gantry_error *err)
{
    *fold = (gy_fold){ .graph = graph,
                       .by_device = options->clusters == GANTRY_CLUSTERS_DEVICES,
                       .by_family = options->clusters == GANTRY_CLUSTERS_FAMILIES };
    GY_TRY(check_options(graph, options, err));
    uint32_t most = options->max_nodes ? (uint32_t)options->max_nodes : DEFAULT_NODES;
    uint8_t *marks = gy_calloc(graph->nodes.count + 1, 1);
    fold->of = gy_calloc(graph->nodes.count + 1, sizeof *fold->of);
    gantry_status status = marks && fold->of ? mark_wanted(graph, options, marks, err) : gy_fail_nomem(err);
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++)
        fold->wanted += marks[i] != 0;
    fold->folded = fold->wanted > most;
    if (!status && (!add_boxes(fold, options, marks, most) || !name_families(fold)))
        status = gy_fail_nomem(err);
    for (uint32_t i = 0; i < graph->nodes.count && options->near && !status; i++)
        if (marks[i] == 1 && fold->of[i] != GY_NONE)
            fold->centre = &fold->box.at[fold->of[i]];
    fold->whole = !status && fold->drawn == graph->nodes.count;
    gy_free(marks);
    return status;
}

void gy_fold_free(gy_fold *fold)
{
    gy_vec_free(&fold->box);
    gy_free(fold->of);
    gy_names_free(&fold->families);
    gy_names_free(&fold->clusters);
}
