/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/embedding.h"
#include <string.h>

enum { TABLE, IDS, Y }; /* arguments */

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gantry_arg *table = &l->arg[TABLE], *ids = &l->arg[IDS];
    size_t bytes = (size_t)table->row_bytes;
    for (int64_t i = first; i < last; i++) {
        int64_t id = gy_id(ids, i);
        if (id < 0 || id >= table->rows) {
            gy_least_row_note(data, i);
            return GANTRY_E_KERNEL;
        }
        memcpy((char *)l->arg[Y].data + (size_t)i * bytes, (const char *)table->data + (size_t)id * bytes, bytes);
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
    GY_REGION("table", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "rows"),
    GY_REGION("ids", GANTRY_READ, GY_ID_DTYPES, 0, "numbers of rows of the table, from 0 on"),
    GY_REGION("y", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "a row for each id"),
};

const gantry_kernel gy_kernel_embedding = { .struct_size = sizeof(gantry_kernel),
                                            .name = "embedding",
                                            .summary = "y[i] = table[ids[i]], rows of a table",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flops = "0",
                                            .bytes = "ids.bytes + 2 * y.bytes",
                                            .host = run,
                                            .check = check };
