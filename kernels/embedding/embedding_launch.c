/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows_launch.h"

enum { NARROW_IDS, WIDE_IDS }; /* variants */

static gantry_status launch_embedding(const gantry_launch *l)
{
    const gantry_arg *table = &l->arg[0], *ids = &l->arg[1];
    const void *t = table->data, *id = ids->data;
    void *y = l->arg[2].data;
    int64_t count = gy_arg_size(ids), rows = table->rows, width = gy_arg_width(table);
    int32_t *status = l->status;
    return gy_cuda_image_launch(l, ids->dtype == GANTRY_I64 ? WIDE_IDS : NARROW_IDS, table->dtype,
                                gy_rows_grid(count, width), (void *[]){ &t, &id, &y, &count, &rows, &width, &status });
}

GY_CUDA_KERNEL(embedding, launch_embedding, GY_FLOAT_DTYPES, "_i32", "_i64")
