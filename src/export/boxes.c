/* SPDX-License-Identifier: Apache-2.0 */
/* Draws ops as boxes. Ops too short to be seen are joined into one box, so that a million ops stay a picture. */
#include "export/timeline.h"

#include <stdio.h>
#include <string.h>

#define BAR           4
#define PER_CHARACTER 6.4 /* widest usual average of an 11 px sans-serif: labels are cut a little early, never late */

typedef struct box {
    double x, end;
    uint32_t ops, own, first, group; /* own: those whose first lane this is */
    bool hot;
} box;

typedef struct drawing {
    gy_line *line;
    gy_text hot, labels; /* drawn above the boxes */
    size_t boxes, most;
    double grain;
} drawing;

static void add_rect(gy_text *to, const char *kind, const box *b, double y, int height)
{
    gy_text_printf(to, "<rect class=\"%s\"", kind);
    gy_line_number(to, "x", b->x);
    gy_line_number(to, "y", y);
    gy_line_number(to, "width", b->end - b->x > 0.3 ? b->end - b->x : 0.3);
    gy_text_printf(to, " height=\"%d\"", height);
}

static void add_hover(gy_text *to, const gy_view *view, const box *b)
{
    char a[GY_EXPORT_SHORT];
    gy_text details = { 0 };
    if (b->ops > 1)
        gy_text_printf(&details, "%s ops, the first:\n", gy_export_count(a, b->ops));
    gy_view_details(&details, view, b->first, "\n");
    gy_text_add(to, "><title>");
    gy_text_xml(to, details.at ? details.at : "");
    gy_text_add(to, "</title></rect>\n");
    to->failed = to->failed || details.failed;
    gy_text_free(&details);
}

/* A copy's route is in its row and its hover text: the label says what moves. */
static void write_name(gy_text *name, const gantry_schedule *s, uint32_t index)
{
    const gy_op *op = &s->ops.at[index];
    if (gy_op_is_copy(op) && op->node == GY_NONE)
        gy_use_text(name, s, &s->use.at[op->use]);
    else
        gy_op_text(name, s, index);
}

/* Where there is no room for "blur[3]" its "[3]" says more than "b…]": the colour says the rest. */
static const char *short_name(const char *name, size_t fits)
{
    const char *index = name + strcspn(name, "[{");
    return gy_export_length(name) > fits && index[0] && gy_export_length(index) <= fits ? index : name;
}

static void add_label(drawing *d, const box *b, double y)
{
    double width = b->end - b->x;
    size_t fits = width > 6 ? (size_t)((width - 6) / PER_CHARACTER) : 0;
    gy_text name = { 0 };
    write_name(&name, d->line->view->s, b->first);
    const char *text = short_name(name.at ? name.at : "", fits);
    gy_text *to = &d->labels;
    if (b->ops == 1 && fits > 0 && (gy_export_length(text) <= fits || fits >= 8)) {
        gy_text_add(to, "<svg class=\"l\"");
        gy_line_number(to, "x", b->x);
        gy_line_number(to, "y", y);
        gy_line_number(to, "width", width);
        gy_text_printf(to, " height=\"%d\"%s><text class=\"label\" x=\"4\" y=\"14\">", GY_LINE_BOX,
                       width < 16 ? " display=\"none\"" : "");
        gy_export_xml_name(to, text, fits);
        gy_text_add(to, "</text></svg>\n");
    }
    to->failed = to->failed || name.failed;
    gy_text_free(&name);
}

/* A frame; where many boxes are narrow, frames would hide them: a bar at the foot. */
static void add_mark(gy_text *to, const box *b, double y)
{
    bool frame = b->ops == 1 && b->end - b->x >= 16;
    add_rect(to, frame ? "hot" : "bar", b, frame ? y : y + GY_LINE_BOX - BAR, frame ? GY_LINE_BOX : BAR);
    gy_text_add(to, "/>\n");
}

static void draw_box(drawing *d, const box *b, double y)
{
    if (b->ops == 0)
        return;
    if (d->boxes++ >= d->most) {
        d->line->left_out += b->own;
        return;
    }
    char kind[24];
    snprintf(kind, sizeof kind, "g%u", b->group);
    add_rect(d->line->to, kind, b, y, GY_LINE_BOX);
    add_hover(d->line->to, d->line->view, b);
    if (b->hot)
        add_mark(&d->hot, b, y);
    add_label(d, b, y);
    d->line->merged = d->line->merged || b->ops > 1;
}

static bool joins(const drawing *d, const box *b, const box *next)
{
    return b->ops > 0 && next->end - next->x < d->grain && next->x - b->end < d->grain &&
           (b->ops > 1 || b->end - b->x < d->grain);
}

static bool is_in_lane(const gantry_schedule *s, const gy_op *op, uint32_t lane)
{
    for (uint32_t k = 0; k < op->lanes; k++)
        if (s->op_lane.at[op->lane + k] == lane)
            return true;
    return false;
}

static void draw_lane(drawing *d, const gy_row *row)
{
    const gy_view *view = d->line->view;
    box open = { 0 };
    for (uint32_t i = 0; i < view->s->ops.count; i++) {
        const gy_op *op = &view->s->ops.at[i];
        if (!is_in_lane(view->s, op, row->at))
            continue;
        bool own = view->s->op_lane.at[op->lane] == row->at;
        box next = { .x = gy_line_x(d->line, op->start),
                     .end = gy_line_x(d->line, op->end),
                     .ops = 1,
                     .own = own,
                     .first = i,
                     .group = view->group[i],
                     .hot = view->critical[i] };
        if (joins(d, &open, &next)) {
            open.end = next.end > open.end ? next.end : open.end;
            open.ops++;
            open.own += own;
            open.hot = open.hot || next.hot;
            open.group = open.group == next.group ? next.group : GY_GROUP_OTHER;
            continue;
        }
        draw_box(d, &open, row->y + 2);
        open = next;
    }
    draw_box(d, &open, row->y + 2);
}

static void add_layer(gy_line *line, const char *attributes, gy_text *layer)
{
    gy_text_printf(line->to, "<g %s>\n", attributes);
    if (layer->at)
        gy_text_add_n(line->to, layer->at, layer->length);
    gy_text_add(line->to, "</g>\n");
    line->to->failed = line->to->failed || layer->failed;
    gy_text_free(layer);
}

void gy_line_boxes(gy_line *line)
{
    drawing d = { .line = line, .most = 8000, .grain = 1.5 };
    gy_text_add(line->to, "<g class=\"zoom\">\n");
    for (size_t i = 0; i < line->rows.count; i++)
        if (line->rows.at[i].kind == GY_ROW_LANE)
            draw_lane(&d, &line->rows.at[i]);
    gy_text_add(line->to, "</g>\n");
    add_layer(line, "class=\"zoom\" pointer-events=\"none\"", &d.hot);
    add_layer(line, "id=\"labels\" pointer-events=\"none\"", &d.labels);
}
