/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placed schedule for Graphviz: a cluster per device, in it a rail per lane on which its ops stand in order, waits
 * between rails, collectives between the devices, the critical path. Time goes from left to right.
 */
#include "export/dot.h"

#define MOST_OPS  400 /* dot takes minutes for more, and the picture is unreadable */
#define MOST_NAME 22

/* True if an arrow goes from one device to another; a collective of several devices is always on another one. */
static bool crosses(const gantry_schedule *s, uint32_t a, uint32_t b)
{
    uint32_t device = gy_view_device(s, &s->ops.at[a]);
    const gy_op *ends[] = { &s->ops.at[a], &s->ops.at[b] };
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < ends[i]->lanes; k++)
            if (gy_op_device(s, ends[i], k) != device)
                return true;
    return false;
}

static uint32_t shown_ops(const gantry_schedule *s)
{
    return (uint32_t)(s->ops.count < MOST_OPS ? s->ops.count : MOST_OPS);
}

/* ---- ops ---- */

/* The rows that a copy moves, and its route: "x{0:10}", "host → gpu0". */
static void add_copy_label(gy_text *to, const gantry_schedule *s, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    gy_text name = { 0 };
    if (op->node < s->node_ids.count)
        gy_text_add(&name, s->node_ids.at[op->node]);
    else
        gy_use_text(&name, s, use);
    if (op->kind != GY_OP_COPY)
        gy_text_printf(to, "%s ", gy_op_kind_name((gy_op_kind)op->kind));
    gy_export_dot_name(to, name.at ? name.at : "", MOST_NAME);
    to->failed = to->failed || name.failed;
    gy_text_free(&name);
    gy_text_add(to, "\\n");
    gy_export_dot_name(to, s->machine->memory[s->instances.at[use[0].instance].memory].id, 12);
    gy_text_add(to, " → ");
    gy_export_dot_name(to, s->machine->memory[s->instances.at[use[1].instance].memory].id, 12);
}

static void add_label(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    char a[GY_EXPORT_SHORT];
    const gy_op *op = &s->ops.at[index];
    if (gy_op_is_copy(op)) {
        add_copy_label(to, s, op);
    } else {
        gy_text name = { 0 };
        gy_op_text(&name, s, index);
        gy_export_dot_name(to, name.at ? name.at : "", MOST_NAME);
        to->failed = to->failed || name.failed;
        gy_text_free(&name);
    }
    if (op->algorithm)
        gy_text_printf(to, "\\nby %s", gy_algorithm_name((gy_algorithm)op->algorithm));
    uint64_t bytes = gy_view_bytes(s, op);
    gy_text_add(to, "\\n");
    if (bytes > 0)
        gy_text_printf(to, "%s, ", gy_bytes_text(a, sizeof a, bytes));
    gy_text_add(to, gy_export_time(a, op->end - op->start, 3, "µs"));
}

static const char *shape_of(const gy_op *op)
{
    switch (op->kind) {
    case GY_OP_COPY:
    case GY_OP_EVICT:
    case GY_OP_FETCH:
        return "cds";
    case GY_OP_COLLECTIVE:
        return "octagon";
    case GY_OP_FILL:
        return "box, style=\"rounded,filled\"";
    case GY_OP_HOST:
        return "note";
    default:
        return "box";
    }
}

static void add_op(gy_text *to, const gy_view *view, uint32_t index)
{
    const gy_op *op = &view->s->ops.at[index];
    gy_colour colour = gy_group_colour(view->group[index]);
    bool hot = view->critical[index];
    gy_text details = { 0 };
    gy_view_details(&details, view, index, "\n");
    gy_text_printf(to, "      op%u [label=\"", index);
    add_label(to, view->s, index);
    gy_text_printf(to, "\", shape=%s, fillcolor=\"%s\", color=\"%s\"", shape_of(op), colour.fill,
                   hot ? GY_EXPORT_HOT : colour.line);
    if (hot)
        gy_text_add(to, ", penwidth=2.6");
    if (gy_op_is_copy(op))
        gy_text_add(to, ", margin=\"0.12,0.16\", fontsize=9"); /* its arrow head takes from the room for text */
    if (op->lanes > 0 && op->kind != GY_OP_COLLECTIVE)
        gy_text_printf(to, ", group=\"lane%u\"", view->s->op_lane.at[op->lane]);
    gy_text_add(to, ", tooltip=\"");
    gy_dot_lines(to, details.at ? details.at : "");
    gy_text_add(to, "\"];\n");
    to->failed = to->failed || details.failed;
    gy_text_free(&details);
}

/* ---- devices and their rails ---- */

static void add_lane(gy_text *to, const gy_view *view, uint32_t lane, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    gy_text_printf(
        to,
        "    subgraph cluster_lane%u {\n      style=\"rounded,filled\"; fillcolor=\"#ffffff\"; color=\"#d5dae0\"; "
        "margin=6; label=\"\"; tooltip=\"a stream: its ops run in this order\";\n      lane%u [label=\"",
        lane, lane);
    gy_view_lane_text(to, view, lane);
    gy_text_printf(to,
                   "\", shape=plaintext, style=\"\", fontcolor=\"" GY_EXPORT_GREY
                   "\", width=0.9, fixedsize=true, group=\"lane%u\"];\n",
                   lane);
    for (uint32_t i = 0; i < shown; i++)
        if (s->ops.at[i].kind != GY_OP_COLLECTIVE && s->ops.at[i].lanes > 0 && s->op_lane.at[s->ops.at[i].lane] == lane)
            add_op(to, view, i);
    gy_text_add(to, "    }\n");
}

/* Lanes whose ops are all collectives have no rail of their own: collectives stand between the devices. */
static bool lane_is_shown(const gy_view *view, uint32_t lane, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    for (uint32_t i = 0; i < shown; i++)
        if (s->ops.at[i].kind != GY_OP_COLLECTIVE && s->ops.at[i].lanes > 0 && s->op_lane.at[s->ops.at[i].lane] == lane)
            return true;
    return false;
}

static void add_device_label(gy_text *to, const gy_view *view, uint32_t device)
{
    char a[GY_EXPORT_SHORT];
    const gantry_machine *m = view->s->machine;
    const gy_device *d = &m->device[device];
    gy_export_dot_name(to, d->id, MOST_NAME);
    gy_text_add(to, "  ·  ");
    gy_export_dot_name(to, d->kind, MOST_NAME);
    gy_text_printf(to, "  ·  busy %s", gy_export_percent(a, (uint64_t)view->busy[device], (uint64_t)view->s->makespan));
    uint64_t peak = gantry_schedule_peak_bytes(view->s, d->memory);
    if (peak > 0)
        gy_text_printf(to, "  ·  peak memory %s", gy_bytes_text(a, sizeof a, peak));
}

static void add_device(gy_text *to, const gy_view *view, uint32_t device, uint32_t shown)
{
    bool open = false;
    for (uint32_t lane = 0; lane < view->s->lanes.count; lane++) {
        if (view->s->lanes.at[lane].device != device || !lane_is_shown(view, lane, shown))
            continue;
        if (!open) {
            gy_text_printf(to, "  subgraph cluster_device%u {\n    label=\"", device);
            add_device_label(to, view, device);
            gy_text_add(to, "\"; labeljust=l; style=\"rounded,filled\"; fillcolor=\"#f1f4f7\"; color=\"#9aa5b1\"; "
                            "fontsize=13; margin=10;\n");
            open = true;
        }
        add_lane(to, view, lane, shown);
    }
    if (open)
        gy_text_add(to, "  }\n");
}

/* ---- edges ---- */

static void add_rail(gy_text *to, const gy_view *view, uint32_t from, uint32_t op)
{
    bool hot = view->critical[op] && view->cause[op] == from;
    gy_text_printf(to, "  op%u -> op%u [%s, weight=%d, tooltip=\"order of the stream\"];\n", from, op,
                   hot ? GY_DOT_HOT_EDGE : GY_DOT_RAIL, view->s->ops.at[op].lanes > 1 ? 1 : 20);
}

static void add_rails(gy_text *to, const gy_view *view, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    for (uint32_t lane = 0; lane < s->lanes.count; lane++) {
        uint32_t last = GY_NONE;
        for (uint32_t i = 0; i < shown; i++)
            for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
                if (s->op_lane.at[s->ops.at[i].lane + k] != lane)
                    continue;
                if (last != GY_NONE)
                    add_rail(to, view, last, i);
                else if (lane_is_shown(view, lane, shown))
                    gy_text_printf(to, "  lane%u -> op%u [" GY_DOT_RAIL ", weight=20];\n", lane, i);
                last = i;
            }
    }
}

/* ---- columns ---- */

static void place_ops(const gantry_schedule *s, uint32_t shown, uint32_t *column, uint32_t *last)
{
    for (uint32_t i = 0; i < shown; i++) {
        const gy_op *op = &s->ops.at[i];
        for (uint32_t k = 0; k < op->lanes; k++) {
            uint32_t before = last[s->op_lane.at[op->lane + k]];
            column[i] = before + 1 > column[i] ? before + 1 : column[i];
        }
        for (uint32_t k = 0; k < op->lanes; k++)
            last[s->op_lane.at[op->lane + k]] = column[i];
    }
}

/* An op stands one column behind the last of what it waits for, the heads of the rails in column 0: left to itself dot
 * may let an op drift to the right as far as its rail goes. */
static uint32_t *columns_of(const gantry_schedule *s, uint32_t shown)
{
    uint32_t *column = gy_calloc(shown, sizeof *column), *last = gy_calloc(s->lanes.count, sizeof *last);
    for (bool moved = column && last; moved;) {
        for (size_t i = 0; i < s->lanes.count; i++)
            last[i] = 0;
        place_ops(s, shown, column, last);
        moved = false;
        for (size_t r = 0; r < s->sync.count; r++) {
            const gy_sync *row = &s->sync.at[r];
            if (row->distance > 0 || row->from >= row->to || row->to >= shown || column[row->to] > column[row->from])
                continue;
            column[row->to] = column[row->from] + 1;
            moved = true;
        }
    }
    if (!last) {
        gy_free(column);
        column = NULL;
    }
    gy_free(last);
    return column;
}

/* Heads stand in one column in the order of devices. Unseen edges ask for that order: from one node to all of them, so
 * that devices that have nothing to do with each other are not laid out each on its own, and from each to the next. */
static void add_heads(gy_text *to, const gy_view *view, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    uint32_t last = GY_NONE;
    gy_text_add(to, "  all [style=invis, label=\"\", width=0, height=0, margin=0];\n  { rank=same;");
    for (uint32_t d = 0; d < s->machine->devices; d++)
        for (uint32_t lane = 0; lane < s->lanes.count; lane++) {
            if (s->lanes.at[lane].device != d || !lane_is_shown(view, lane, shown))
                continue;
            if (last != GY_NONE)
                gy_text_printf(to, " lane%u -> lane%u [style=invis];", last, lane);
            last = lane;
        }
    gy_text_add(to, " }\n");
    for (uint32_t lane = 0; lane < s->lanes.count; lane++)
        if (lane_is_shown(view, lane, shown))
            gy_text_printf(to, "  all -> lane%u [style=invis];\n", lane);
}

static void add_columns(gy_text *to, const gy_view *view, uint32_t shown)
{
    uint32_t *column = columns_of(view->s, shown), most = 0;
    to->failed = to->failed || !column;
    for (uint32_t i = 0; column && i < shown; i++)
        most = column[i] > most ? column[i] : most;
    for (uint32_t c = 1; column && c <= most; c++) {
        gy_text_add(to, "  { rank=same;");
        for (uint32_t i = 0; i < shown; i++)
            if (column[i] == c)
                gy_text_printf(to, " op%u;", i);
        gy_text_add(to, " }\n");
    }
    gy_free(column);
}

static bool same_lane(const gantry_schedule *s, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < s->ops.at[a].lanes; i++)
        for (uint32_t k = 0; k < s->ops.at[b].lanes; k++)
            if (s->op_lane.at[s->ops.at[a].lane + i] == s->op_lane.at[s->ops.at[b].lane + k])
                return true;
    return false;
}

static void add_wait(gy_text *to, const gy_view *view, const gy_sync *row)
{
    bool hot = view->critical[row->from] && view->cause[row->to] == row->from && view->critical[row->to];
    gy_text_printf(to, "  op%u -> op%u [%s", row->from, row->to, hot ? GY_DOT_HOT_EDGE : "color=\"#55606c\"");
    if (crosses(view->s, row->from, row->to))
        gy_text_add(to, hot ? ", style=\"dashed,bold\"" : ", style=dashed");
    gy_text_printf(to, ", tooltip=\"%s, carried by %s %u\"];\n", gy_reason_name((gy_reason)row->reason),
                   gy_carrier_name((gy_carrier)row->carrier), row->slot);
}

static void add_waits(gy_text *to, const gy_view *view, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    for (size_t r = 0; r < s->sync.count; r++) {
        const gy_sync *row = &s->sync.at[r];
        if (row->distance == 0 && row->from < shown && row->to < shown && !same_lane(s, row->from, row->to))
            add_wait(to, view, row);
    }
}

/* Draws arrows for copies that waited for a copy engine: no row of the sync table says so. */
static void add_engine_waits(gy_text *to, const gy_view *view, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    for (uint32_t i = 0; i < shown; i++) {
        uint32_t from = view->critical[i] ? view->cause[i] : GY_NONE;
        bool known = from == GY_NONE || from >= shown || same_lane(s, from, i);
        for (size_t r = 0; !known && r < s->sync.count; r++)
            known = s->sync.at[r].from == from && s->sync.at[r].to == i;
        if (!known)
            gy_text_printf(
                to,
                "  op%u -> op%u [%s, style=\"dotted,bold\", constraint=false, tooltip=\"waits for a copy engine\"];\n",
                from, i, GY_DOT_HOT_EDGE);
    }
}

/* ---- head ---- */

static void add_notes(gy_text *to, const gy_view *view, uint32_t shown)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    if (shown < view->s->ops.count)
        gy_text_printf(to, "<tr><td align=\"left\"><font color=\"%s\">first %s of %s ops shown</font></td></tr>",
                       GY_EXPORT_HOT, gy_export_count(a, shown), gy_export_count(b, view->s->ops.count));
}

static void add_title(gy_text *to, const gy_view *view, uint32_t shown)
{
    const gantry_schedule *s = view->s;
    gy_text line = { 0 };
    gy_view_headline(&line, view, "µs");
    gy_dot_begin(to, s->graph_name ? s->graph_name : "schedule", "LR");
    gy_text_add(to,
                "  label=<<table border=\"0\" cellspacing=\"2\"><tr><td align=\"left\"><font point-size=\"18\"><b>");
    gy_export_xml_name(to, s->graph_name ? s->graph_name : "schedule", 60);
    gy_text_add(to, " on "); /* all of it bold: renderers lose a blank between texts of two faces */
    gy_export_xml_name(to, s->machine->name, 60);
    gy_text_add(to, "</b></font></td></tr><tr><td align=\"left\">");
    gy_export_xml_name(to, line.at ? line.at : "", 0);
    gy_text_add(to, "</td></tr>");
    add_notes(to, view, shown);
    gy_text_add(to, "<tr><td align=\"left\">");
    gy_dot_legend_begin(to);
    gy_dot_legend_groups(to, &view->groups);
    gy_dot_legend_line(to, "#9aa5b1", "━━", "stream, in order");
    gy_dot_legend_line(to, "#55606c", "──►", "wait within a device");
    gy_dot_legend_line(to, "#55606c", "– – ►", "wait across devices");
    gy_dot_legend_line(to, GY_EXPORT_HOT, "━━►", "critical path");
    gy_dot_legend_end(to);
    gy_text_add(to, "</td></tr></table>>;\n");
    to->failed = to->failed || line.failed;
    gy_text_free(&line);
}

void gy_export_schedule_dot(gy_text *to, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    uint32_t shown = shown_ops(s);
    add_title(to, view, shown);
    add_heads(to, view, shown);
    for (uint32_t d = 0; d < s->machine->devices; d++)
        add_device(to, view, d, shown);
    for (uint32_t i = 0; i < shown; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE || s->ops.at[i].lanes == 0)
            add_op(to, view, i);
    add_columns(to, view, shown);
    add_rails(to, view, shown);
    add_waits(to, view, shown);
    add_engine_waits(to, view, shown);
    gy_text_add(to, "}\n");
}
