/* SPDX-License-Identifier: Apache-2.0 */
/* The head and the legend, which both DOT pictures have. */
#ifndef GY_EXPORT_DOT_H
#define GY_EXPORT_DOT_H

#include "export/export.h"

#define GY_DOT_HOT_EDGE "color=\"" GY_EXPORT_HOT "\", penwidth=2.6"
#define GY_DOT_RAIL     "color=\"#c3cbd4\", penwidth=4, arrowhead=none"

/* "digraph ... {" with defaults for fonts, nodes and edges. `rankdir` "LR" or "TB". */
void gy_dot_begin(gy_text *to, const char *name, const char *rankdir);
/* A text of several lines inside a quoted string: each line cleaned, "\n" between. */
void gy_dot_lines(gy_text *to, const char *lines);
/* A legend is a row of an HTML-like table, broken into several by itself. */
void gy_dot_legend_begin(gy_text *to);
void gy_dot_legend_box(gy_text *to, gy_colour colour, const char *text);
void gy_dot_legend_line(gy_text *to, const char *colour, const char *line, const char *text);
void gy_dot_legend_groups(gy_text *to, const gy_groups *groups); /* those that are used */
void gy_dot_legend_end(gy_text *to);

#endif
