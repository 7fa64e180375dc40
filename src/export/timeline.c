/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: head, legend, and a row per device, lane and memory. */
#include "export/timeline.h"

#include <stdio.h>

#define MOST_LANES 96 /* rows beyond that make a picture taller than any screen */
#define HEAD       24
#define LANE       (GY_LINE_BOX + 4)
#define CHART      46

double gy_line_x(const gy_line *line, gy_ticks t)
{
    gy_ticks whole = line->view->s->makespan;
    return whole > 0 ? GY_LINE_PLOT * ((double)t / (double)whole) : 0;
}

void gy_line_number(gy_text *to, const char *name, double value)
{
    gy_text_printf(to, " %s=\"", name);
    gy_export_fixed(to, value, 2);
    gy_text_add(to, "\"");
}

/* ---- rows ---- */

static void add_row(gy_line *line, gy_row_kind kind, uint32_t at, double height)
{
    if (!gy_vec_push(&line->rows, ((gy_row){ (uint8_t)kind, at, line->bottom, height })))
        line->to->failed = true;
    line->bottom += height;
}

static void add_lanes(gy_line *line, uint32_t device)
{
    const gantry_schedule *s = line->view->s;
    for (int kind = GY_LANE_COMPUTE; kind <= GY_LANE_COLLECTIVE; kind++)
        for (uint32_t i = 0; i < s->lanes.count; i++)
            if (s->lanes.at[i].device == device && s->lanes.at[i].kind == kind && line->view->lane[i].ops > 0 &&
                line->lanes++ < MOST_LANES) {
                add_row(line, GY_ROW_LANE, i, LANE);
                line->lanes_shown++;
            }
}

static bool has_bytes(const gantry_schedule *s, uint32_t memory)
{
    return (memory < s->slab.count && s->slab.at[memory] > 0) || (memory == 0 && s->staging > 0);
}

/* Devices may share a memory: it stands below the last of them. */
static bool is_last_on(const gantry_machine *m, uint32_t device)
{
    for (uint32_t i = device + 1; i < m->devices; i++)
        if (m->device[i].memory == m->device[device].memory)
            return false;
    return true;
}

static void lay_out(gy_line *line)
{
    const gantry_schedule *s = line->view->s;
    const gantry_machine *m = s->machine;
    for (uint32_t d = 0; d < m->devices; d++) {
        bool used = gy_view_device_used(line->view, d), memory = is_last_on(m, d) && has_bytes(s, m->device[d].memory);
        if (!used && !memory && m->device[d].host_only)
            continue;
        add_row(line, GY_ROW_DEVICE, d, HEAD);
        add_lanes(line, d);
        if (memory)
            add_row(line, GY_ROW_MEMORY, m->device[d].memory, CHART);
        line->bottom += 8;
    }
    for (uint32_t i = 0; i < m->memories; i++) {
        bool attached = false;
        for (uint32_t d = 0; d < m->devices; d++)
            attached = attached || m->device[d].memory == i;
        if (!attached && has_bytes(s, i))
            add_row(line, GY_ROW_MEMORY, i, CHART);
    }
}

/* ---- names of rows ---- */

static void text_at(gy_text *to, double x, double y, const char *kind)
{
    gy_text_printf(to, "<text class=\"%s\"", kind);
    gy_line_number(to, "x", x);
    gy_line_number(to, "y", y);
    gy_text_add(to, ">");
}

static void name_device(gy_line *line, const gy_row *row)
{
    char a[GY_EXPORT_SHORT];
    gy_text *to = line->to;
    const gy_device *d = &line->view->s->machine->device[row->at];
    gy_text_printf(to, "<rect class=\"band\" x=\"0\" width=\"%d\" height=\"%d\"", GY_LINE_WIDTH, HEAD - 4);
    gy_line_number(to, "y", row->y);
    gy_text_add(to, "/>");
    text_at(to, 12, row->y + 15, "device");
    gy_export_xml_name(to, d->id, 40);
    gy_text_add(to, " <tspan class=\"soft\">· ");
    gy_export_xml_name(to, d->kind, 40);
    if (line->view->busy[row->at] > 0)
        gy_text_printf(to, " · computing %s of the time",
                       gy_export_percent(a, (uint64_t)line->view->busy[row->at], (uint64_t)line->view->s->makespan));
    else if (gy_view_device_used(line->view, row->at))
        gy_text_add(to, " · copies only");
    else
        gy_text_add(to, " · idle");
    gy_text_add(to, "</tspan></text>\n");
}

static void name_lane(gy_line *line, const gy_row *row)
{
    gy_text_printf(line->to, "<line class=\"rail\" x1=\"%d\" x2=\"%d\"", GY_LINE_LEFT, GY_LINE_LEFT + GY_LINE_PLOT);
    gy_line_number(line->to, "y1", row->y + LANE / 2.0);
    gy_line_number(line->to, "y2", row->y + LANE / 2.0);
    gy_text_add(line->to, "/>");
    text_at(line->to, 24, row->y + LANE / 2.0 + 4, "row");
    gy_view_lane_text(line->to, line->view, row->at);
    gy_text_add(line->to, "</text>\n");
}

static void name_memory(gy_line *line, const gy_row *row)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    const gantry_schedule *s = line->view->s;
    const gy_memory *m = &s->machine->memory[row->at];
    uint64_t room = m->capacity - m->reserved,
             peak = gantry_schedule_peak_bytes(s, row->at) + (row->at == 0 ? s->staging : 0);
    text_at(line->to, 24, row->y + 15, "row");
    gy_text_add(line->to, "memory ");
    gy_export_xml_name(line->to, m->id, 12);
    gy_text_add(line->to, "</text>");
    text_at(line->to, 24, row->y + 27, "small");
    gy_text_printf(line->to, "peak %s,</text>", gy_bytes_text(a, sizeof a, peak));
    text_at(line->to, 24, row->y + 38, "small");
    gy_text_printf(line->to, "%s of %s</text>\n", gy_export_percent(b, peak, room), gy_bytes_text(a, sizeof a, room));
}

static void name_rows(gy_line *line)
{
    for (size_t i = 0; i < line->rows.count; i++) {
        const gy_row *row = &line->rows.at[i];
        if (row->kind == GY_ROW_DEVICE)
            name_device(line, row);
        else if (row->kind == GY_ROW_LANE)
            name_lane(line, row);
        else
            name_memory(line, row);
    }
}

/* ---- head ---- */

typedef struct legend {
    gy_text *to;
    double x, y;
} legend;

static void add_entry(legend *l, gy_colour colour, const char *shape, const char *text)
{
    double width = 34 + 7.6 * (double)gy_export_length(text);
    if (l->x + width > GY_LINE_WIDTH - 12) {
        l->x = 12;
        l->y += 20;
    }
    gy_text_printf(l->to, "<%s fill=\"%s\" stroke=\"%s\"", shape, colour.fill, colour.line);
    gy_line_number(l->to, "x", l->x);
    gy_line_number(l->to, "y", l->y - 10);
    gy_text_add(l->to, "/>");
    text_at(l->to, l->x + 22, l->y, "row");
    gy_export_xml_name(l->to, text, 0);
    gy_text_add(l->to, "</text>");
    l->x += width;
}

#define SWATCH "rect width=\"16\" height=\"12\" rx=\"2\""

/* Returns the y below it. */
static double add_legend(gy_line *line, double y)
{
    legend l = { line->to, 12, y };
    const gy_groups *g = &line->view->groups;
    for (uint32_t i = 0; i < GY_GROUP_FIRST_NAME + GY_GROUP_NAMES; i++) {
        uint32_t group = (i + GY_GROUP_FIRST_NAME) % (GY_GROUP_FIRST_NAME + GY_GROUP_NAMES);
        gy_text name = { 0 };
        if (g->used[group] > 0) {
            gy_export_name(&name, gy_group_label(g, group), 24);
            add_entry(&l, gy_group_colour(group), SWATCH, name.at ? name.at : "");
        }
        line->to->failed = line->to->failed || name.failed;
        gy_text_free(&name);
    }
    add_entry(&l, (gy_colour){ "none", GY_EXPORT_HOT }, SWATCH " stroke-width=\"2\"", "critical path");
    if (line->view->s->bound > 0)
        add_entry(&l, (gy_colour){ "none", GY_EXPORT_INK }, "rect width=\"0.1\" height=\"12\" stroke-dasharray=\"3 2\"",
                  "lower bound");
    add_entry(&l, GY_EXPORT_MEMORY, SWATCH, "memory in use");
    gy_text_add(line->to, "\n");
    return l.y + 14;
}

static void add_title(gy_line *line)
{
    const gantry_schedule *s = line->view->s;
    gy_text headline = { 0 };
    gy_view_headline(&headline, line->view, "µs");
    gy_text_add(line->to, "<text class=\"title\" x=\"12\" y=\"28\"><tspan font-weight=\"bold\">");
    gy_export_xml_name(line->to, s->graph_name ? s->graph_name : "schedule", 60);
    gy_text_add(line->to, "</tspan> on ");
    gy_export_xml_name(line->to, s->machine->name, 40);
    gy_text_add(line->to, "</text>\n<text class=\"head\" x=\"12\" y=\"48\">");
    gy_export_xml_name(line->to, headline.at ? headline.at : "", 0);
    gy_text_add(line->to, "</text>\n");
    line->to->failed = line->to->failed || headline.failed;
    gy_text_free(&headline);
}

static void add_note(gy_line *line, const char *kind, const char *text)
{
    text_at(line->to, 12, line->bottom + 14, kind);
    gy_text_printf(line->to, "%s</text>\n", text);
    line->bottom += 18;
}

static void add_notes(gy_line *line)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT], text[200];
    if (line->merged)
        add_note(line, "aside",
                 "Ops too short to be told apart are drawn together, in grey if they are of different kinds.");
    if (line->lanes_shown < line->lanes) {
        snprintf(text, sizeof text, "First %s of %s streams shown.", gy_export_count(a, line->lanes_shown),
                 gy_export_count(b, line->lanes));
        add_note(line, "note", text);
    }
    if (line->left_out > 0) {
        uint64_t all = line->view->s->ops.count;
        snprintf(text, sizeof text, "%s of %s ops shown; the later ones of each stream are left out.",
                 gy_export_count(a, all - line->left_out), gy_export_count(b, all));
        add_note(line, "note", text);
    }
}

/* ---- the picture ---- */

static void add_style(gy_text *to)
{
    gy_text_add(to, "<style>text{font-family:Helvetica,Arial,\"DejaVu Sans\",sans-serif;fill:" GY_EXPORT_INK "}"
                    ".title{font-size:18px}.head{font-size:13px}.device{font-size:13px;font-weight:bold}"
                    ".soft{font-weight:normal;fill:#4b5560}.row{font-size:12px}.small{font-size:10px;fill:#4b5560}"
                    ".aside{font-size:12px;fill:#4b5560}.note{font-size:12px;fill:" GY_EXPORT_HOT
                    "}.label{font-size:11px}.band{fill:#eef2f6}"
                    ".rail{stroke:#dfe4ea}.grid{stroke:#e6eaef}.tick{font-size:11px;fill:#4b5560;text-anchor:middle}"
                    ".bound{stroke:" GY_EXPORT_INK ";stroke-dasharray:5 4}.mem{fill:#dde3ea;stroke:#4a5a6a}"
                    ".full{stroke:#b23a1e;stroke-dasharray:5 4}.hot{fill:none;stroke:" GY_EXPORT_HOT
                    ";stroke-width:2}.bar{fill:" GY_EXPORT_HOT "}"
                    "rect,path,line{vector-effect:non-scaling-stroke}");
    for (uint32_t i = 0; i < GY_GROUP_FIRST_NAME + GY_GROUP_NAMES; i++)
        gy_text_printf(to, ".g%u{fill:%s;stroke:%s}", i, gy_group_colour(i).fill, gy_group_colour(i).line);
    gy_text_add(to, "</style>\n");
}

static void add_body(gy_line *line)
{
    line->bottom += 26; /* the axis' numbers */
    line->top = line->bottom;
    lay_out(line);
    name_rows(line);
    gy_line_axis_name(line);
    gy_text_printf(line->to, "<svg class=\"plot\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\">\n", GY_LINE_LEFT,
                   GY_LINE_PLOT, (int)line->bottom + 4);
    gy_line_grid(line);
    gy_line_charts(line);
    gy_line_boxes(line);
    gy_text_add(line->to, "</svg>\n");
    add_notes(line);
}

void gy_export_svg(gy_text *to, const gy_view *view)
{
    gy_text body = { 0 };
    gy_line line = { .to = &body, .view = view };
    add_title(&line);
    line.bottom = add_legend(&line, 74);
    add_body(&line);
    gy_text_printf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", GY_LINE_WIDTH,
                   (int)line.bottom + 12);
    gy_text_printf(to, " width=\"%d\" height=\"%d\" role=\"img\">\n", GY_LINE_WIDTH, (int)line.bottom + 12);
    add_style(to);
    gy_text_printf(to, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", GY_LINE_WIDTH, (int)line.bottom + 12);
    if (body.at)
        gy_text_add_n(to, body.at, body.length);
    gy_text_add(to, "</svg>\n");
    to->failed = to->failed || body.failed;
    gy_text_free(&body);
    gy_vec_free(&line.rows);
}
