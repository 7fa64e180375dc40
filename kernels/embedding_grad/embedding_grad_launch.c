/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/embedding.h"
#include "kernels/rows_launch.h"

enum { PLACES, ADD, WIDE_IDS };              /* variants; those of ids of 64 bits come after the others */
enum { IDS = GY_TABLE_NUMBERS, DY, DTABLE }; /* arguments */

static gantry_status launch_embedding_grad(const gantry_launch *l)
{
    const gantry_arg *ids = &l->arg[IDS], *table = &l->arg[DTABLE];
    const void *id = ids->data, *dy = l->arg[DY].data;
    void *dtable = table->data, *link = l->scratch;
    int64_t count = gy_arg_size(ids), rows = table->rows, width = gy_arg_width(table);
    int64_t first = l->arg[GY_TABLE_FIRST].integer, of = gy_table_rows(l, rows);
    int32_t *status = l->status;
    int wide = ids->dtype == GANTRY_I64 ? WIDE_IDS : 0;
    if (count == 0)
        return GANTRY_OK;
    gantry_status failed = gy_cuda_image_launch(l, wide + PLACES, table->dtype, gy_grid_for(count),
                                                (void *[]){ &id, &link, &count, &of, &status });
    return failed ? failed
                  : gy_cuda_image_launch(l, wide + ADD, table->dtype, gy_rows_grid(count, width),
                                         (void *[]){ &id, &link, &dy, &dtable, &count, &rows, &width, &first });
}

GY_CUDA_KERNEL(embedding_grad, launch_embedding_grad, GY_FLOAT_DTYPES, "_places_i32", "_i32", "_places_i64", "_i64")
