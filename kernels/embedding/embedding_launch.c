/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/embedding.h"
#include "kernels/rows_launch.h"

enum { NARROW_IDS, WIDE_IDS };             /* variants */
enum { TABLE = GY_TABLE_NUMBERS, IDS, Y }; /* arguments */

static gantry_status launch_embedding(const gantry_launch *l)
{
    const gantry_arg *table = &l->arg[TABLE], *ids = &l->arg[IDS];
    const void *t = table->data, *id = ids->data;
    void *y = l->arg[Y].data;
    int64_t count = gy_arg_size(ids), rows = table->rows, width = gy_arg_width(table);
    int64_t first = l->arg[GY_TABLE_FIRST].integer, of = gy_table_rows(l, rows);
    int adds = l->arg[Y].access == GANTRY_SUM;
    int32_t *status = l->status;
    return gy_cuda_image_launch(l, ids->dtype == GANTRY_I64 ? WIDE_IDS : NARROW_IDS, table->dtype,
                                gy_rows_grid(count, width),
                                (void *[]){ &t, &id, &y, &count, &rows, &width, &first, &of, &adds, &status });
}

GY_CUDA_KERNEL(embedding, launch_embedding, GY_FLOAT_DTYPES, "_i32", "_i64")
