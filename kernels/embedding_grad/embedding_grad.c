/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/embedding.h"
#include "kernels/rows.h"
#include <stdbool.h>

enum { IDS = GY_TABLE_NUMBERS, DY, DTABLE }; /* arguments */

/* For each row that is here the first place where it is asked for, and for each place the next with the same id; -1:
 * none. Both lie in scratch. */
typedef struct places {
    int64_t *first, *next;
} places;

/* False: an id is no row, and the status word says where. */
static bool find_places(const gantry_launch *l, places *p)
{
    int64_t rows = l->arg[DTABLE].rows, of = gy_table_rows(l, rows);
    bool ok = true;
    p->next = l->scratch;
    p->first = p->next + gy_arg_size(&l->arg[IDS]);
    for (int64_t r = 0; r < rows; r++)
        p->first[r] = -1;
    for (int64_t i = gy_arg_size(&l->arg[IDS]) - 1; i >= 0; i--) {
        int64_t id = gy_id(&l->arg[IDS], i), row = id - l->arg[GY_TABLE_FIRST].integer;
        if (id < 0 || id >= of) {
            *l->status = gy_row_code(i); /* the least of them stays */
            ok = false;
            continue;
        }
        if (row < 0 || row >= rows)
            continue;
        p->next[i] = p->first[row];
        p->first[row] = i;
    }
    return ok;
}

static void add_row(const gantry_launch *l, const places *p, int64_t row)
{
    int64_t width = gy_arg_width(&l->arg[DTABLE]);
    for (int64_t c = 0; c < width; c += GY_LANES) {
        gy_lanes sum = { { 0 } }, d;
        int count = 0;
        for (int64_t i = p->first[row]; i >= 0; i = p->next[i]) {
            count = gy_lanes_load(&d, GY_LANES, &l->arg[DY], i * width + c, (i + 1) * width);
            for (int k = 0; k < GY_LANES; k++)
                sum.at[k] += d.at[k];
        }
        gy_lanes_add(&sum, &l->arg[DTABLE], row * width + c, count);
    }
}

/* Rows of the table have nothing to do with each other. */
static gantry_status add_rows(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const places *p = data;
    for (int64_t r = first; r < last; r++)
        if (p->first[r] >= 0)
            add_row(l, p, r);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    places p;
    int64_t rows = l->arg[DTABLE].rows, elements = gy_arg_size(&l->arg[DY]);
    if (!find_places(l, &p))
        return GANTRY_OK;
    return gantry_launch_cut(l, rows, gy_grain_of_rows(elements / (rows + 1) + 1), add_rows, &p);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_embedding(l, DTABLE, IDS, DY, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_TABLE_SCALARS,
    GY_REGION("ids", GANTRY_READ, GY_ID_DTYPES, 0, "those of embedding"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of y, a row for each id"),
    GY_REGION("dtable", GANTRY_SUM, GY_FLOAT_DTYPES, 'T', "gradient of the table"),
};

const gantry_kernel gy_kernel_embedding_grad = { .struct_size = sizeof(gantry_kernel),
                                                 .name = "embedding_grad",
                                                 .summary =
                                                     "dtable[ids[i]] += dy[i], added up in the order of i; status: "
                                                     "number of an id that is no row, from 1",
                                                 GANTRY_KERNEL_ARGS(args),
                                                 .flops = "dy.size",
                                                 .bytes = "ids.bytes + dy.bytes + 2 * min(dy.bytes, dtable.bytes)",
                                                 .scratch = "8 * (ids.size + dtable.rows)",
                                                 .host = run,
                                                 .check = check };
