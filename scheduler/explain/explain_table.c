/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/explain/explain.h"

#include <stdarg.h>
#include <string.h>

void gy_table_cell(gy_table *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_text_vprintf(&t->cells, format, args);
    va_end(args);
    gy_text_add_n(&t->cells, "", 1);
    t->count++;
}

static size_t width_of(const gy_table *t, size_t column)
{
    size_t columns = strlen(t->align), widest = 0;
    const char *cell = t->cells.at;
    for (size_t i = 0; i < t->count; i++, cell += strlen(cell) + 1)
        if (i % columns == column && strlen(cell) > widest)
            widest = strlen(cell);
    return widest;
}

/* Spaces are held back until something follows them. */
static void print_cell(gy_text *to, const char *cell, char align, size_t width, size_t *spaces)
{
    size_t pad = width - strlen(cell), before = align == 'r' ? pad : 0;
    *spaces += before;
    if (*cell) {
        gy_text_printf(to, "%*s%s", (int)*spaces, "", cell);
        *spaces = 0;
    }
    *spaces += pad - before + 2;
}

void gy_table_print(gy_table *t, gy_text *to)
{
    size_t columns = strlen(t->align), spaces = 2;
    size_t *width = gy_calloc(columns, sizeof *width);
    to->failed = to->failed || t->cells.failed || !width;
    for (size_t c = 0; c < columns && !to->failed; c++)
        width[c] = width_of(t, c);
    const char *cell = t->cells.at;
    for (size_t i = 0; i < t->count && !to->failed; i++, cell += strlen(cell) + 1) {
        print_cell(to, cell, t->align[i % columns], width[i % columns], &spaces);
        if (i % columns == columns - 1) {
            gy_text_add(to, "\n");
            spaces = 2;
        }
    }
    gy_free(width);
    gy_text_free(&t->cells);
    t->count = 0;
}
