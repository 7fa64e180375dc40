/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/embedding.h"
#include "kernels/rows.h"
#include <stdbool.h>
#include <string.h>

enum { TABLE = GY_TABLE_NUMBERS, IDS, Y }; /* arguments */

static void add_row(const gantry_launch *l, int64_t from, int64_t to)
{
    int64_t width = gy_arg_width(&l->arg[TABLE]);
    gy_lanes row;
    for (int64_t c = 0; c < width; c += GY_LANES) {
        int count = gy_lanes_load(&row, GY_LANES, &l->arg[TABLE], from * width + c, (from + 1) * width);
        gy_lanes_add(&row, &l->arg[Y], to * width + c, count);
    }
}

/* Row i of y, for a row of the whole table; one that is elsewhere counts as zeros. */
static void give_row(const gantry_launch *l, int64_t id, int64_t i)
{
    const gantry_arg *table = &l->arg[TABLE];
    size_t bytes = (size_t)table->row_bytes;
    char *y = (char *)l->arg[Y].data + (size_t)i * bytes;
    int64_t row = id - l->arg[GY_TABLE_FIRST].integer;
    bool is_here = row >= 0 && row < table->rows, adds = l->arg[Y].access == GANTRY_SUM;
    if (is_here && adds)
        add_row(l, row, i);
    else if (is_here)
        memcpy(y, (const char *)table->data + (size_t)row * bytes, bytes);
    else if (!adds)
        memset(y, 0, bytes);
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    int64_t rows = gy_table_rows(l, l->arg[TABLE].rows);
    for (int64_t i = first; i < last; i++) {
        int64_t id = gy_id(&l->arg[IDS], i);
        if (id < 0 || id >= rows) {
            gy_least_row_note(data, i); /* the status word says it */
            return GANTRY_OK;
        }
        give_row(l, id, i);
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_least_row wrong = INT64_MAX;
    gantry_status status =
        gantry_launch_cut(l, gy_arg_size(&l->arg[IDS]), gy_grain_of_rows(gy_arg_width(&l->arg[TABLE])), piece, &wrong);
    gy_least_row_tell(&wrong, l);
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_embedding(l, TABLE, IDS, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_TABLE_SCALARS,
    GY_REGION("table", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows"),
    GY_REGION("ids", GANTRY_READ, GY_ID_DTYPES, 0, "numbers of rows of the table, from 0 on"),
    { .name = "y",
      .access = GANTRY_WRITE,
      .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM),
      .dtypes = GY_FLOAT_DTYPES,
      .same = 'T',
      .summary = "a row for each id; sum adds to it" },
};

const gantry_kernel gy_kernel_embedding = { .struct_size = sizeof(gantry_kernel),
                                            .name = "embedding",
                                            .summary = "y[i] = table[ids[i]], rows of a table; status: number of an "
                                                       "id that is no row, from 1",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "0",
                                            .bytes = "ids.bytes + 2 * y.bytes",
                                            .host = run,
                                            .check = check };
