/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

/* As in fail.c: how it fails, from an iteration on. */
static gantry_status launch_fail(const gantry_launch *l)
{
    enum { RETURNS = 1, SETS_STATUS = 2, WRITES_NAN = 3, COPY = 0, TELL = 1 };
    const gantry_arg *in = &l->arg[2], *out = &l->arg[3];
    const void *x = in->data;
    void *y = out->data;
    int64_t bytes = in->rows * in->row_bytes;
    gantry_status status = gy_cuda_image_launch(l, COPY, in->dtype, gy_grid_for(bytes), (void *[]){ &x, &y, &bytes });
    int how = l->iteration < l->arg[1].integer ? 0 : (int)l->arg[0].number;
    if (status || how == RETURNS)
        return status ? status : GANTRY_E_KERNEL;
    int32_t *word = how == SETS_STATUS ? l->status : NULL, code = 7;
    void *element = how == WRITES_NAN && out->dtype == GANTRY_F32 && bytes > 0 ? out->data : NULL;
    if (!word && !element)
        return GANTRY_OK;
    return gy_cuda_image_launch(l, TELL, in->dtype, (gy_grid){ 1, 1, 1, 1, 1, 1 },
                                (void *[]){ &word, &code, &element });
}

GY_CUDA_KERNEL(fail, launch_fail, 0, "_copy", "_tell")
