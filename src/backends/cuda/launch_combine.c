/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives combine contributions with (kernels.h). */
#include "backends/cuda/image.h"

enum { PACK = 16, BLOCK_BYTES = GY_IMAGE_THREADS * PACK };

/* As in kernels/combine/combine.cu. */
typedef struct sources {
    const void *at[GY_CUDA_SOURCES];
    int64_t count;
} sources;

/* combine_OP_DTYPE(sources, to, n, head) */
static gantry_status launch_combine(const gantry_launch *l)
{
    const gantry_arg *target = &l->arg[0];
    sources from = { .count = l->args - 1 };
    void *to = target->data;
    uintptr_t beyond = (uintptr_t)to % PACK;
    int64_t n = gy_arg_size(target), size = (int64_t)gantry_dtype_size(target->dtype);
    int64_t head = (int64_t)((PACK - beyond) % PACK) / size;
    for (int32_t i = 0; i < l->args - 1; i++) {
        from.at[i] = l->arg[1 + i].data;
        head = (uintptr_t)from.at[i] % PACK == beyond ? head : n;
    }
    head = head < n ? head : n;
    int variant = (int)target->access - GANTRY_SUM;
    gy_grid grid = gy_image_grid(l, variant, target->dtype, (n * size + BLOCK_BYTES - 1) / BLOCK_BYTES);
    return gy_image_launch(l, variant, target->dtype, grid, (void *[]){ &from, &to, &n, &head });
}

/* Its functions have another name than it has in the table. */
static gantry_status open_combine(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                  gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "combine", .data = kernel->data };
    return gy_image_open(handle, &code, driver, err);
}

/* In the order of gantry_access. */
static const gy_image image = { gy_fatbin_combine, GY_ALL_DTYPES, { "_sum", "_min", "_max", "_prod" } };
const gy_cuda_kernel gy_cuda_kernel_combine = {
    .name = GY_CUDA_COMBINE, .launch = launch_combine, .open = open_combine, .close = gy_image_close, .data = &image
};
