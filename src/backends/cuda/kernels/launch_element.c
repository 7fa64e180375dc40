/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that do the same to each element. */
#include "backends/cuda/kernels/image.h"

#include <stdbool.h>

enum { MOST_ARGS = 6, PACK = 16, BLOCK_BYTES = 4096 };

/* Bytes by which the address is beyond a multiple of a pack. */
static int64_t beyond(const gantry_arg *a)
{
    return (int64_t)((uintptr_t)a->data % PACK);
}

/* Elements before the first at which all regions are aligned to packs; all of them if there is none. */
static int64_t head_of(const gantry_launch *l, const gantry_arg *like)
{
    int64_t n = gy_arg_size(like), size = (int64_t)gantry_dtype_size(like->dtype);
    int64_t head = (PACK - beyond(like)) % PACK / size;
    for (int32_t i = 0; i < l->args; i++) {
        if (l->arg[i].access && beyond(&l->arg[i]) != beyond(like)) {
            return n;
        }
    }
    return head < n ? head : n;
}

/* NAME(numbers and addresses in the order of the manifest, n, head) */
static gantry_status launch_each(const gantry_launch *l)
{
    void *data[MOST_ARGS], *params[MOST_ARGS + 2];
    gy_multiplier number[MOST_ARGS];
    const gantry_arg *first = l->arg[0].access ? &l->arg[0] : &l->arg[1];
    int64_t n = gy_arg_size(first), head = head_of(l, first);
    int64_t work = (n * (int64_t)gantry_dtype_size(first->dtype) + BLOCK_BYTES - 1) / BLOCK_BYTES;
    for (int32_t i = 0; i < l->args; i++) {
        data[i] = l->arg[i].data;
        number[i] = gy_multiplier_of(&l->arg[i], first->dtype);
        params[i] = l->arg[i].access ? (void *)&data[i] : &number[i];
    }
    params[l->args] = &n;
    params[l->args + 1] = &head;
    return gy_cuda_image_launch(l, 0, first->dtype, gy_cuda_image_grid(l, 0, first->dtype, work), params);
}

#define KERNEL(name_, dtypes)                                                                                          \
    static const gy_cuda_image image_##name_ = { gy_fatbin_##name_, dtypes, { "" } };                                  \
    const gy_cuda_kernel gy_cuda_kernel_##name_ = { .name = #name_,                                                    \
                                                    .launch = launch_each,                                             \
                                                    .open = gy_cuda_image_open,                                        \
                                                    .close = gy_cuda_image_close,                                      \
                                                    .data = &image_##name_ };
KERNEL(add, GY_ALL_DTYPES)
KERNEL(axpby, GY_ALL_DTYPES)
KERNEL(copy, GY_ALL_DTYPES)
KERNEL(mul, GY_ALL_DTYPES)
KERNEL(relu, GY_FLOAT_DTYPES)
KERNEL(relu_grad, GY_FLOAT_DTYPES)
KERNEL(saxpy, GY_ALL_DTYPES)
KERNEL(scale, GY_ALL_DTYPES)
KERNEL(sgd_update, GY_FLOAT_DTYPES)

/* ---- bias_add: the same row for all ---- */

enum { PLAIN, WIDE, ROWS = 4 };

/* Columns in x, rows in y. A block has as many columns as it can use, and rows with the threads that are left. */
static gy_grid shape_rows(const gantry_launch *l, int variant, int64_t rows, int64_t width)
{
    unsigned columns = 1;
    int64_t most = gy_cuda_image_grid(l, variant, l->arg[0].dtype, INT64_MAX).x;
    while (columns < GY_IMAGE_THREADS && columns < width) {
        columns *= 2;
    }
    int64_t x = (width + columns - 1) / columns, y = GY_IMAGE_THREADS / columns;
    x = x < most ? x : most;
    int64_t down = (rows + ROWS * y - 1) / (ROWS * y), room = (most + x - 1) / x;
    down = down < room ? down : room;
    return (gy_grid){ (unsigned)x, (unsigned)(down < UINT16_MAX ? down : UINT16_MAX), 1, columns, (unsigned)y, 1 };
}

/* bias_add(x, b, y, rows, width) */
static gantry_status launch_bias(const gantry_launch *l)
{
    void *x = l->arg[0].data, *b = l->arg[1].data, *y = l->arg[2].data;
    int64_t rows = l->arg[0].rows, width = gy_arg_width(&l->arg[0]);
    bool wide = l->arg[0].row_bytes % PACK == 0 && !beyond(&l->arg[0]) && !beyond(&l->arg[1]) && !beyond(&l->arg[2]);
    int variant = wide ? WIDE : PLAIN;
    width = wide ? l->arg[0].row_bytes / PACK : width;
    return gy_cuda_image_launch(l, variant, l->arg[0].dtype, shape_rows(l, variant, rows, width),
                                (void *[]){ &x, &b, &y, &rows, &width });
}

static const gy_cuda_image image_bias_add = { gy_fatbin_bias_add, GY_FLOAT_DTYPES, { [PLAIN] = "", [WIDE] = "_wide" } };
const gy_cuda_kernel gy_cuda_kernel_bias_add = { .name = "bias_add",
                                                 .launch = launch_bias,
                                                 .open = gy_cuda_image_open,
                                                 .close = gy_cuda_image_close,
                                                 .data = &image_bias_add };
