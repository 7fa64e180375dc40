/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for tests: busy takes time, fail fails. */
#include "backends/cuda/kernels/image.h"

static gantry_status launch_busy(const gantry_launch *l)
{
    int64_t ns = (int64_t)(l->arg[0].number * 1e3), n = gy_arg_size(&l->arg[2]);
    gy_multiplier number = gy_multiplier_of(&l->arg[1], l->arg[2].dtype);
    const void *x = l->arg[2].data;
    void *y = l->arg[3].data;
    return gy_cuda_image_launch(l, 0, l->arg[2].dtype, gy_grid_for(n > 0 ? n : 1),
                                (void *[]){ &ns, &number, &x, &y, &n });
}

static const gy_cuda_image image_busy = { gy_fatbin_busy, GY_ALL_DTYPES, { "" } };
const gy_cuda_kernel gy_cuda_kernel_busy = {
    .name = "busy", .launch = launch_busy, .open = gy_cuda_image_open, .close = gy_cuda_image_close, .data = &image_busy
};

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

static const gy_cuda_image image_fail = { gy_fatbin_fail, 0, { "_copy", "_tell" } };
const gy_cuda_kernel gy_cuda_kernel_fail = {
    .name = "fail", .launch = launch_fail, .open = gy_cuda_image_open, .close = gy_cuda_image_close, .data = &image_fail
};
