/* SPDX-License-Identifier: Apache-2.0 */
/* The graph for Graphviz: nodes by kind, what flows between them, inputs and outputs, loops. */
#include "export/dot.h"
#include "export/graph_edges.h"

#include <string.h>

#define MOST_ENDS   150 /* more arrows from and to buffers hide the graph */
#define MOST_LABELS 60  /* more labels on arrows cannot be told apart; tool tips stay */
#define MOST_NAME   28

#define NO_COLOUR   ((gy_colour){ "#ffffff", "#7a8490" })

/* ---- nodes ---- */

/* The kernels of map nodes are made by the graph, and their names tell a reader nothing. */
static bool is_map(const gantry_graph *g, const gy_node *n)
{
    return n->kernel != GY_NONE && g->kernels.at[n->kernel].maths;
}

static bool is_named(const gy_node *n)
{
    return n->kind == GY_NODE_KERNEL || n->kind == GY_NODE_LAUNCH || n->kind == GY_NODE_WORK;
}

static uint32_t group_of(gy_groups *groups, const gy_node *n)
{
    static const uint8_t of_kind[] = { [GY_NODE_HOST] = GY_GROUP_HOST,
                                       [GY_NODE_COPY] = GY_GROUP_COPY,
                                       [GY_NODE_FILL] = GY_GROUP_FILL,
                                       [GY_NODE_COLLECTIVE] = GY_GROUP_COLLECTIVE };
    if (is_named(n))
        return gy_groups_of(groups, n->id); /* as in pictures of schedules, which know no kernels */
    groups->used[of_kind[n->kind]]++;
    return of_kind[n->kind];
}

static const char *shape_of(const gy_node *n)
{
    switch (n->kind) {
    case GY_NODE_COPY:
        return "shape=cds, margin=\"0.12,0.10\"";
    case GY_NODE_FILL:
        return "shape=ellipse";
    case GY_NODE_COLLECTIVE:
        return "shape=octagon";
    case GY_NODE_HOST:
        return "shape=note";
    case GY_NODE_WORK:
        return "shape=box, style=\"filled,dashed\"";
    default:
        return "shape=box";
    }
}

static const char *kind_of(const gantry_graph *g, const gy_node *n)
{
    static const char *const names[] = { "kernel", "launch", "host call", "copy", "fill", "collective", "work" };
    if (n->kind == GY_NODE_COLLECTIVE && n->extra != GY_NONE) {
        const char *name = gantry_collective_name(g->extra.at[n->extra].collective);
        return name ? name : names[n->kind];
    }
    if (is_map(g, n))
        return g->kernels.at[n->kernel].manifest->summary; /* its formulas */
    return n->kernel != GY_NONE ? g->kernels.at[n->kernel].manifest->name : names[n->kind];
}

static void add_accesses(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    for (uint32_t k = 0; k < n->accesses && k < 12; k++) {
        const gy_access *a = &g->access.at[n->access + k];
        const char *mode = a->arg == GY_ARG_WHEN ? "when" : gantry_access_name(gy_access_given(a));
        gy_text_printf(to, "\n%s ", mode ? mode : "");
        gy_access_text(to, g, a);
    }
    if (n->accesses > 12)
        gy_text_printf(to, "\n... and %u more", n->accesses - 12);
}

static void add_tip(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    gy_text tip = { 0 };
    gy_text_printf(&tip, "%s\n%s", n->id, kind_of(g, n));
    if (n->flops > 0 || n->bytes > 0)
        gy_text_printf(&tip, "\n%.4g flops, %.4g bytes", n->flops, n->bytes);
    add_accesses(&tip, g, n);
    gy_dot_lines(to, tip.at ? tip.at : "");
    to->failed = to->failed || tip.failed;
    gy_text_free(&tip);
}

static void add_flag(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    gy_text flag = { 0 };
    gy_access_text(&flag, g, &g->access.at[n->access + gy_node_regions(n)]);
    gy_text_add(to, "\\nwhen ");
    gy_export_dot_name(to, flag.at ? flag.at : "", MOST_NAME);
    to->failed = to->failed || flag.failed;
    gy_text_free(&flag);
}

static void add_box(gy_text *to, gy_groups *groups, const gy_fold *fold, const gy_fold_box *box)
{
    char count[GY_EXPORT_SHORT];
    const gantry_graph *g = fold->graph;
    const gy_node *n = &g->nodes.at[box->first];
    gy_colour colour = gy_group_colour(group_of(groups, n));
    gy_text_printf(to, "  n%u [label=\"", box->first);
    gy_export_dot_name(to, box->name, MOST_NAME);
    if (box->nodes > 1)
        gy_text_printf(to, " × %s", gy_export_count(count, box->nodes));
    const char *kind = kind_of(g, n);
    if (n->kind != GY_NODE_LAUNCH && n->kind != GY_NODE_WORK && strncmp(n->id, kind, strlen(kind)) != 0) {
        gy_text_add(to, "\\n");
        gy_export_dot_name(to, kind, MOST_NAME);
    }
    if (n->has_when)
        add_flag(to, g, n);
    gy_text_printf(to, "\", %s, fillcolor=\"%s\", color=\"%s\"%s%s, tooltip=\"", shape_of(n), colour.fill, colour.line,
                   box->nodes > 1 ? ", peripheries=2" : "", box == fold->centre ? ", penwidth=2.6" : "");
    if (box->nodes > 1)
        gy_text_printf(to, "%s nodes, the first:\\n", gy_export_count(count, box->nodes));
    add_tip(to, g, n);
    gy_text_add(to, "\"];\n");
}

static void open_cluster(gy_text *to, size_t loop, const gy_loop *l)
{
    gy_text_printf(
        to,
        "  subgraph cluster_loop%zu {\n  label=\"repeats %lld times\"; labeljust=l; style=\"rounded,dashed\"; "
        "color=\"#7a8490\"; fontsize=10; margin=10;\n",
        loop, (long long)l->count);
}

/* Clusters of inner loops that begin at the node, from outside inwards. */
static void open_inner(gy_text *to, const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    if (n->inner == GY_NONE)
        return;
    for (uint32_t i = g->loops.at[n->loop].inner; i <= n->inner; i++) {
        const gy_loop *l = &g->inner.at[i];
        if (l->first_node == node && l->last_node > node)
            open_cluster(to, g->loops.count + i, l);
    }
}

/* Closes the clusters of inner loops that the node ends with. */
static void close_inner(gy_text *to, const gantry_graph *g, uint32_t node)
{
    for (uint32_t i = g->nodes.at[node].inner; i != GY_NONE; i = g->inner.at[i].parent)
        if (g->inner.at[i].last_node == node + 1)
            gy_text_add(to, "  }\n");
}

/* Nodes of a loop are neighbours: a cluster opens at the first and closes behind the last. */
static void add_loops(gy_text *to, gy_groups *groups, const gy_fold *fold)
{
    const gantry_graph *g = fold->graph;
    const uint32_t nodes = (uint32_t)g->nodes.count;
    uint32_t open = GY_NONE, box = 0;
    for (uint32_t i = 0; i <= nodes; i++) {
        uint32_t loop = i < nodes ? g->nodes.at[i].loop : GY_NONE;
        if (i > 0)
            close_inner(to, g, i - 1);
        if (loop != open && open != GY_NONE)
            gy_text_add(to, "  }\n");
        if (loop != open && loop != GY_NONE)
            open_cluster(to, loop, &g->loops.at[loop]);
        open = loop;
        if (i < nodes)
            open_inner(to, g, i);
        if (box < fold->box.count && fold->box.at[box].first == i)
            add_box(to, groups, fold, &fold->box.at[box++]);
    }
}

static void add_clusters(gy_text *to, gy_groups *groups, const gy_fold *fold)
{
    for (uint32_t c = 0; c < fold->clusters.count; c++) {
        gy_text_printf(to, "  subgraph cluster_%s%u {\n  label=\"", fold->by_device ? "device" : "family", c);
        gy_export_dot_name(to, gy_names_at(&fold->clusters, c), MOST_NAME);
        gy_text_add(to,
                    "\"; labeljust=l; style=\"rounded,filled\"; fillcolor=\"#f1f4f7\"; color=\"#9aa5b1\"; fontsize=11; "
                    "margin=10;\n");
        for (size_t i = 0; i < fold->box.count; i++)
            if (fold->box.at[i].cluster == c)
                add_box(to, groups, fold, &fold->box.at[i]);
        gy_text_add(to, "  }\n");
    }
    for (size_t i = 0; i < fold->box.count; i++)
        if (fold->box.at[i].cluster == GY_NONE)
            add_box(to, groups, fold, &fold->box.at[i]);
}

/* ---- buffers ---- */

static void add_buffer(gy_text *to, const gantry_graph *g, uint32_t index, const char *prefix)
{
    char size[GY_EXPORT_SHORT];
    const gy_buffer *b = &g->buffers.at[index];
    const char *dtype = gantry_dtype_name(b->dtype);
    gy_text_printf(to, "  %s%u [label=\"", prefix, index);
    gy_export_dot_name(to, b->name, MOST_NAME);
    gy_text_printf(to, "\\n%s [", dtype ? dtype : "?");
    for (int i = 0; i < b->rank; i++)
        gy_text_printf(to, "%s%lld", i > 0 ? ", " : "", (long long)b->shape[i]);
    gy_text_printf(to, "]\\n%s\", shape=cylinder, labelloc=b, fillcolor=\"%s\", color=\"%s\", fontsize=9, tooltip=\"",
                   gy_bytes_text(size, sizeof size, b->bytes), NO_COLOUR.fill, NO_COLOUR.line);
    gy_export_dot_name(to, b->name, 0);
    gy_text_printf(to, "%s\"];\n", prefix[0] == 'i' ? ", as a start begins" : ", as a start ends");
}

static void add_end_arrow(gy_text *to, const gy_arrows *a, const gy_arrow *e, bool input)
{
    gy_text region = { 0 };
    gy_access_text(&region, a->graph, &a->graph->access.at[e->access]);
    if (input)
        gy_text_printf(to, "  i%u -> n%u", e->from, a->fold->box.at[e->to].first);
    else
        gy_text_printf(to, "  n%u -> o%u", a->fold->box.at[e->from].first, e->to);
    gy_text_add(to, " [color=\"#9aa5b1\", edgetooltip=\"");
    gy_export_dot_name(to, region.at ? region.at : "", 0);
    gy_text_add(to, "\"];\n");
    to->failed = to->failed || region.failed;
    gy_text_free(&region);
}

static void add_ends(gy_text *to, const gy_arrows *a)
{
    for (uint32_t b = 0; b < a->graph->buffers.count; b++)
        for (int way = 0; way < 2; way++) {
            size_t count = way ? a->outputs.count : a->inputs.count;
            const gy_arrow *at = way ? a->outputs.at : a->inputs.at;
            bool made = false;
            for (size_t i = 0; i < count; i++) {
                if ((way ? at[i].to : at[i].from) != b)
                    continue;
                if (!made)
                    add_buffer(to, a->graph, b, way ? "o" : "i");
                made = true;
                add_end_arrow(to, a, &at[i], !way);
            }
        }
}

/* ---- arrows ---- */

static void add_arrow(gy_text *to, const gy_arrows *a, const gy_arrow *e, bool labels)
{
    gy_text what = { 0 };
    if (e->data)
        gy_arrow_text(&what, a, e);
    if (e->data && a->fold->box.at[e->from].nodes + a->fold->box.at[e->to].nodes > 2)
        gy_text_add(&what, ", …"); /* other nodes of the family hand over other regions */
    const char *text = what.at ? what.at : e->data ? "" : "order only";
    gy_text_printf(to, "  n%u -> n%u [%s", a->fold->box.at[e->from].first, a->fold->box.at[e->to].first,
                   e->carried ? "style=dashed, constraint=false, color=\"#6a3fa0\""
                   : e->data  ? "color=\"#55606c\""
                              : "style=dotted, color=\"#55606c\"");
    if (labels && e->data && !e->carried) {
        gy_text_add(to, ", label=\" ");
        gy_export_dot_name(to, text, 22);
        gy_text_add(to, "\"");
    }
    for (int i = 0; i < 2; i++) {
        gy_text_add(to, i ? ", labeltooltip=\"" : ", edgetooltip=\"");
        gy_export_dot_name(to, text, 0);
        gy_text_add(to, e->carried ? ", for the next iteration\"" : "\"");
    }
    gy_text_add(to, "];\n");
    to->failed = to->failed || what.failed;
    gy_text_free(&what);
}

/* ---- head ---- */

static void add_legend(gy_text *to, const gy_arrows *a, const gy_groups *groups, bool ends)
{
    bool order = false, carried = false;
    for (size_t i = 0; i < a->between.count; i++) {
        order = order || !a->between.at[i].data;
        carried = carried || a->between.at[i].carried;
    }
    gy_dot_legend_begin(to);
    gy_dot_legend_groups(to, groups);
    if (ends)
        gy_dot_legend_box(to, NO_COLOUR, "buffer");
    gy_dot_legend_line(to, "#55606c", "──►", "data");
    if (order)
        gy_dot_legend_line(to, "#55606c", "···►", "order only");
    if (carried)
        gy_dot_legend_line(to, "#6a3fa0", "– – ►", "to the next iteration");
    gy_dot_legend_end(to);
}

/* Where not all nodes have a box of their own. */
static void add_note(gy_text *to, const gy_fold *fold)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    const size_t nodes = fold->graph->nodes.count;
    if (fold->drawn == nodes && !fold->folded)
        return;
    gy_text_printf(to, "<tr><td align=\"left\"><font color=\"%s\">", GY_EXPORT_HOT);
    if (fold->drawn < nodes)
        gy_text_printf(to, "%s%s of %s nodes", fold->drawn < fold->wanted ? "first " : "",
                       gy_export_count(a, fold->drawn), gy_export_count(b, nodes));
    if (fold->folded)
        gy_text_printf(to, "%s%s boxes: nodes whose ids differ in what is in brackets share one",
                       fold->drawn < nodes ? " in " : "", gy_export_count(a, fold->box.count));
    gy_text_add(to, "</font></td></tr>");
}

static void add_title(gy_text *to, const gy_fold *fold)
{
    const gantry_graph *g = fold->graph;
    char a[GY_EXPORT_SHORT];
    const char *name = g->name && g->name[0] ? g->name : "graph";
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->buffers.count; i++)
        bytes += g->buffers.at[i].bytes;
    gy_text_add(to,
                "  label=<<table border=\"0\" cellspacing=\"2\"><tr><td align=\"left\"><font point-size=\"18\"><b>");
    gy_export_xml_name(to, name, 60);
    gy_text_printf(to, "</b></font></td></tr><tr><td align=\"left\">%s node%s", gy_export_count(a, g->nodes.count),
                   g->nodes.count == 1 ? "" : "s");
    gy_text_printf(to, " · %s buffer%s", gy_export_count(a, g->buffers.count), g->buffers.count == 1 ? "" : "s");
    gy_text_printf(to, " · %s</td></tr>", gy_bytes_text(a, sizeof a, bytes));
    add_note(to, fold);
    gy_text_add(to, "<tr><td align=\"left\">");
}

static void add_all(gy_text *to, const gy_arrows *a, gy_groups *groups)
{
    const gantry_graph *g = a->graph;
    bool ends = a->inputs.count + a->outputs.count > 0 && a->inputs.count + a->outputs.count <= MOST_ENDS;
    gy_text body = { 0 };
    if (a->fold->by_device || a->fold->by_family)
        add_clusters(&body, groups, a->fold);
    else
        add_loops(&body, groups, a->fold);
    if (ends)
        add_ends(&body, a);
    for (size_t i = 0; i < a->between.count; i++)
        add_arrow(&body, a, &a->between.at[i], a->between.count <= MOST_LABELS);
    gy_dot_begin(to, g->name ? g->name : "graph", "TB");
    add_title(to, a->fold);
    add_legend(to, a, groups, ends);
    gy_text_add(to, "</td></tr></table>>;\n");
    if (body.at)
        gy_text_add_n(to, body.at, body.length);
    gy_text_add(to, "}\n");
    to->failed = to->failed || body.failed;
    gy_text_free(&body);
}

void gy_export_graph_dot(gy_text *to, const gy_fold *fold)
{
    gy_arrows arrows;
    gy_groups groups = { 0 };
    for (size_t i = 0; i < fold->box.count; i++) {
        const gy_node *n = &fold->graph->nodes.at[fold->box.at[i].first];
        if (is_named(n))
            gy_groups_add(&groups, n->id, fold->box.at[i].nodes);
    }
    gy_groups_rank(&groups);
    if (gy_arrows_make(&arrows, fold))
        add_all(to, &arrows, &groups);
    else
        to->failed = true;
    to->failed = to->failed || groups.failed;
    gy_arrows_free(&arrows);
    gy_groups_free(&groups);
}
