/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in use over time. */
#include "export/timeline.h"

#define INSET 4

/* Where a number of bytes is: 0 at the row's bottom. */
static double y_of(const gy_row *row, uint64_t bytes, uint64_t most)
{
    return row->y + row->height - INSET - (row->height - 2 * INSET) * ((double)bytes / (double)most);
}

static void move(gy_text *to, const char *how, double value)
{
    gy_text_add(to, how);
    gy_export_fixed(to, value, 2);
}

/* Steps closer than `grain` become one column as high as the highest of them. */
static void add_path(gy_line *line, const gy_row *row, const gy_memory_profile *profile, uint64_t most)
{
    const double grain = 0.4;
    gy_text *to = line->to;
    gy_text_add(to, "<path class=\"mem\" d=\"");
    move(to, "M", 0);
    move(to, " ", y_of(row, 0, most));
    for (size_t i = 0; i < profile->count;) {
        double x = gy_line_x(line, profile->at[i].time);
        uint64_t high = profile->at[i].bytes;
        size_t last = i;
        while (last + 1 < profile->count && gy_line_x(line, profile->at[last + 1].time) - x < grain) {
            last++;
            high = profile->at[last].bytes > high ? profile->at[last].bytes : high;
        }
        move(to, "H", x);
        move(to, "V", y_of(row, high, most));
        if (high != profile->at[last].bytes)
            move(to, "V", y_of(row, profile->at[last].bytes, most));
        i = last + 1;
    }
    move(to, "H", GY_LINE_PLOT);
    move(to, "V", y_of(row, 0, most));
    gy_text_add(to, "Z\"/>\n");
}

static void add_capacity(gy_line *line, const gy_row *row, uint64_t room, uint64_t most)
{
    if (room > most)
        return;
    gy_text_printf(line->to, "<line class=\"full\" x1=\"0\" x2=\"%d\"", GY_LINE_PLOT);
    gy_line_number(line->to, "y1", y_of(row, room, most));
    gy_line_number(line->to, "y2", y_of(row, room, most));
    gy_text_add(line->to, "><title>capacity</title></line>\n");
}

/* The capacity is the scale where it is not far above the peak; else the peak is (the row's name says both). */
static void add_chart(gy_line *line, const gy_row *row)
{
    const gantry_schedule *s = line->view->s;
    const gy_memory *m = &s->machine->memory[row->at];
    gy_memory_profile profile = { 0 };
    uint64_t peak = 1, room = m->capacity - m->reserved;
    if (!gy_memory_profile_make(&profile, s, row->at, NULL))
        line->to->failed = true;
    for (size_t i = 0; i < profile.count; i++)
        peak = profile.at[i].bytes > peak ? profile.at[i].bytes : peak;
    uint64_t most = room / 4 <= peak && room > peak ? room : peak;
    add_path(line, row, &profile, most);
    add_capacity(line, row, room, most);
    gy_vec_free(&profile);
}

void gy_line_charts(gy_line *line)
{
    gy_text_add(line->to, "<g class=\"zoom\">\n");
    for (size_t i = 0; i < line->rows.count; i++)
        if (line->rows.at[i].kind == GY_ROW_MEMORY)
            add_chart(line, &line->rows.at[i]);
    gy_text_add(line->to, "</g>\n");
}
