/* SPDX-License-Identifier: Apache-2.0 */
/* The time axis of the timeline. */
#include "export/timeline.h"

/* 1, 2 or 5 times a power of ten: the smallest that makes at most ten steps. */
static gy_ticks step_of(gy_ticks whole)
{
    for (gy_ticks power = 1;; power *= 10)
        for (int i = 0; i < 3; i++) {
            gy_ticks step = power * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (whole / step <= 10)
                return step;
        }
}

static const char *unit_of(gy_ticks whole, gy_ticks *unit)
{
    static const char *const names[] = { "ps", "ns", "µs", "ms", "s" };
    int i = 0;
    for (*unit = 1; i < 4 && whole >= *unit * 1000; i++)
        *unit *= 1000;
    return names[i];
}

static void add_vertical(gy_line *line, const char *kind, double x, double top)
{
    gy_text_printf(line->to, "<line class=\"%s\"", kind);
    gy_line_number(line->to, "x1", x);
    gy_line_number(line->to, "x2", x);
    gy_line_number(line->to, "y1", top);
    gy_line_number(line->to, "y2", line->bottom);
    gy_text_add(line->to, "/>");
}

static void add_tick(gy_line *line, gy_ticks t, gy_ticks unit)
{
    double x = gy_line_x(line, t);
    const char *anchor = t == 0                  ? " style=\"text-anchor:start\""
                         : x > GY_LINE_PLOT - 16 ? " style=\"text-anchor:end\""
                                                 : "";
    add_vertical(line, "grid", x, line->top - 6);
    gy_text_printf(line->to, "<text class=\"tick\"%s", anchor);
    gy_line_number(line->to, "x", x);
    gy_line_number(line->to, "y", line->top - 10);
    gy_text_add(line->to, ">");
    gy_export_fixed(line->to, (double)t / (double)unit, 3);
    gy_text_add(line->to, "</text>\n");
}

/* No schedule is faster than the bound: a dashed line in the picture. */
static void add_bound(gy_line *line)
{
    gy_ticks bound = line->view->s->bound;
    if (bound <= 0 || bound > line->view->s->makespan)
        return;
    gy_text_add(line->to, "<g class=\"zoom\">");
    add_vertical(line, "bound", gy_line_x(line, bound), line->top - 4);
    gy_text_add(line->to, "</g>\n");
}

void gy_line_axis_name(gy_line *line)
{
    gy_ticks unit;
    const char *name = unit_of(line->view->s->makespan, &unit);
    gy_text_add(line->to, "<text class=\"row\" x=\"24\"");
    gy_line_number(line->to, "y", line->top - 10);
    gy_text_printf(line->to, ">time in %s</text>\n", name);
}

void gy_line_grid(gy_line *line)
{
    gy_ticks whole = line->view->s->makespan, unit, step = step_of(whole);
    unit_of(whole, &unit);
    gy_text_add(line->to, "<g id=\"grid\" data-whole=\"");
    gy_export_fixed(line->to, (double)whole / (double)unit, 9);
    gy_text_add(line->to, "\">\n");
    for (gy_ticks t = 0; t <= whole && whole > 0; t += step)
        add_tick(line, t, unit);
    gy_text_add(line->to, "</g>\n");
    add_bound(line);
}
