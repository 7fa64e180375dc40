/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"

/* The flag, and the handle of the condition as a number. */
static gantry_status launch_when(const gantry_launch *l)
{
    const gantry_arg *flag = &l->arg[0];
    unsigned long long handle = (unsigned long long)l->arg[1].integer;
    int bytes = (int)gantry_dtype_size(flag->dtype);
    unsigned long long all = UINT64_MAX >> (64 - 8 * bytes);
    unsigned long long mask = gy_dtype_is_float(flag->dtype) ? all >> 1 : all;
    return gy_cuda_image_launch(l, 0, (gantry_dtype)0, (gy_grid){ 1, 1, 1, 1, 1, 1 },
                                (void *[]){ &handle, (void *)(uintptr_t)&flag->data, &bytes, &mask });
}

/* Its function has another name than it has in the table. */
static gantry_status open_when(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "when", .data = kernel->data };
    GY_TRY(gy_cuda_image_open(handle, &code, driver, err));
    gantry_status status = gy_cuda_image_find_all(*handle, err);
    if (status)
        gy_cuda_image_close(*handle);
    return status;
}

static const gy_cuda_image image = { .code = gy_fatbin_when, .dtypes = 0, .variant = { "" } };
const gy_cuda_kernel gy_cuda_kernel_when = { .name = GY_CUDA_WHEN,
                                             .launch = launch_when,
                                             .open = open_when,
                                             .close = gy_cuda_image_close,
                                             .data = &image,
                                             .why = gy_cuda_image_why };
