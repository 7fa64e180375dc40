/* SPDX-License-Identifier: Apache-2.0 */
/* The graph for Graphviz: nodes by kind, what flows between them, inputs and outputs, loops. */
#include "export/dot.h"
#include "export/graph_edges.h"

#include <string.h>

#define MOST_NODES  400
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

/* The name that puts a node into a group, hence gives its colour: that of its kernel, else its id. */
static const char *group_name(const gantry_graph *g, const gy_node *n)
{
    return n->kernel != GY_NONE && !is_map(g, n) ? g->kernels.at[n->kernel].manifest->name : n->id;
}

static bool is_named(const gy_node *n)
{
    return n->kind == GY_NODE_KERNEL || n->kind == GY_NODE_LAUNCH || n->kind == GY_NODE_WORK;
}

static uint32_t group_of(gy_groups *groups, const gantry_graph *g, const gy_node *n)
{
    static const uint8_t of_kind[] = { [GY_NODE_HOST] = GY_GROUP_HOST,
                                       [GY_NODE_COPY] = GY_GROUP_COPY,
                                       [GY_NODE_FILL] = GY_GROUP_FILL,
                                       [GY_NODE_COLLECTIVE] = GY_GROUP_COLLECTIVE };
    if (is_named(n))
        return gy_groups_of(groups, group_name(g, n));
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
    return n->kernel != GY_NONE ? group_name(g, n) : names[n->kind];
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

static void add_node(gy_text *to, gy_groups *groups, const gantry_graph *g, uint32_t index)
{
    const gy_node *n = &g->nodes.at[index];
    gy_colour colour = gy_group_colour(group_of(groups, g, n));
    gy_text_printf(to, "  n%u [label=\"", index);
    gy_export_dot_name(to, n->id, MOST_NAME);
    const char *kind = kind_of(g, n);
    if (n->kind != GY_NODE_LAUNCH && n->kind != GY_NODE_WORK && strncmp(n->id, kind, strlen(kind)) != 0) {
        gy_text_add(to, "\\n");
        gy_export_dot_name(to, kind, MOST_NAME);
    }
    if (n->has_when)
        add_flag(to, g, n);
    gy_text_printf(to, "\", %s, fillcolor=\"%s\", color=\"%s\", tooltip=\"", shape_of(n), colour.fill, colour.line);
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

/* Closes the clusters of inner loops that the node, or what is shown, ends with. */
static void close_inner(gy_text *to, const gantry_graph *g, uint32_t node, uint32_t shown)
{
    for (uint32_t i = g->nodes.at[node].inner; i != GY_NONE; i = g->inner.at[i].parent)
        if (g->inner.at[i].last_node == node + 1 || node + 1 == shown)
            gy_text_add(to, "  }\n");
}

/* Nodes of a loop are neighbours: a cluster opens at the first and closes behind the last. */
static void add_nodes(gy_text *to, gy_groups *groups, const gantry_graph *g, uint32_t shown)
{
    uint32_t open = GY_NONE;
    for (uint32_t i = 0; i <= shown; i++) {
        uint32_t loop = i < shown ? g->nodes.at[i].loop : GY_NONE;
        if (i > 0)
            close_inner(to, g, i - 1, shown);
        if (loop != open && open != GY_NONE)
            gy_text_add(to, "  }\n");
        if (loop != open && loop != GY_NONE)
            open_cluster(to, loop, &g->loops.at[loop]);
        open = loop;
        if (i < shown)
            open_inner(to, g, i);
        if (i < shown)
            add_node(to, groups, g, i);
    }
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
    gy_text_printf(to, input ? "  i%u -> n%u" : "  n%u -> o%u", e->from, e->to);
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
    const char *text = what.at ? what.at : e->data ? "" : "order only";
    gy_text_printf(to, "  n%u -> n%u [%s", e->from, e->to,
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

static void add_title(gy_text *to, const gantry_graph *g, uint32_t shown)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
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
    if (shown < g->nodes.count)
        gy_text_printf(to, "<tr><td align=\"left\"><font color=\"%s\">first %s of %s nodes shown</font></td></tr>",
                       GY_EXPORT_HOT, gy_export_count(a, shown), gy_export_count(b, g->nodes.count));
    gy_text_add(to, "<tr><td align=\"left\">");
}

static void add_all(gy_text *to, const gy_arrows *a, gy_groups *groups)
{
    const gantry_graph *g = a->graph;
    bool ends = a->inputs.count + a->outputs.count > 0 && a->inputs.count + a->outputs.count <= MOST_ENDS;
    gy_text body = { 0 };
    add_nodes(&body, groups, g, a->shown);
    if (ends)
        add_ends(&body, a);
    for (size_t i = 0; i < a->between.count; i++)
        add_arrow(&body, a, &a->between.at[i], a->between.count <= MOST_LABELS);
    gy_dot_begin(to, g->name ? g->name : "graph", "TB");
    add_title(to, g, a->shown);
    add_legend(to, a, groups, ends);
    gy_text_add(to, "</td></tr></table>>;\n");
    if (body.at)
        gy_text_add_n(to, body.at, body.length);
    gy_text_add(to, "}\n");
    to->failed = to->failed || body.failed;
    gy_text_free(&body);
}

void gy_export_graph_dot(gy_text *to, const gantry_graph *graph)
{
    uint32_t shown = (uint32_t)(graph->nodes.count < MOST_NODES ? graph->nodes.count : MOST_NODES);
    gy_arrows arrows;
    gy_groups groups = { 0 };
    for (uint32_t i = 0; i < shown; i++)
        if (is_named(&graph->nodes.at[i]))
            gy_groups_add(&groups, group_name(graph, &graph->nodes.at[i]), 1);
    gy_groups_rank(&groups);
    if (gy_arrows_make(&arrows, graph, shown))
        add_all(to, &arrows, &groups);
    else
        to->failed = true;
    to->failed = to->failed || groups.failed;
    gy_arrows_free(&arrows);
    gy_groups_free(&groups);
}
