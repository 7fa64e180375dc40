/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline's geometry: rows from top to bottom, time from left to right. Lengths are in SVG units (pixels). */
#ifndef GY_EXPORT_TIMELINE_H
#define GY_EXPORT_TIMELINE_H

#include "export/export.h"

#define GY_LINE_WIDTH 1280
#define GY_LINE_LEFT  160 /* where time 0 is; names of rows stand left of it */
#define GY_LINE_PLOT  1096
#define GY_LINE_BOX   20 /* height of an op */

typedef enum gy_row_kind { GY_ROW_DEVICE, GY_ROW_LANE, GY_ROW_MEMORY } gy_row_kind;

typedef struct gy_row {
    uint8_t kind;
    uint32_t at; /* device, lane or memory */
    double y, height;
} gy_row;

typedef struct gy_line {
    gy_text *to;
    const gy_view *view;
    GY_VEC(gy_row) rows;
    double top, bottom; /* of the plot */
    size_t lanes, lanes_shown;
    bool merged;     /* some ops were too short to be drawn one by one */
    size_t left_out; /* ops that are not drawn at all */
} gy_line;

/* x of a time, at no zoom. */
double gy_line_x(const gy_line *line, gy_ticks t);
/* axis.c: the unit of time left of the axis; grid, numbers and the bound inside the plot. */
void gy_line_axis_name(gy_line *line);
void gy_line_grid(gy_line *line);
/* boxes.c: ops of all lane rows, the critical path and labels. Sets `merged` and `left_out`. */
void gy_line_boxes(gy_line *line);
/* chart.c: bytes in use over time of all memory rows. */
void gy_line_charts(gy_line *line);

/* ` name="12.5"` */
void gy_line_number(gy_text *to, const char *name, double value);

#endif
