/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax with cross entropy: rows that a warp takes, or a block where they are long. */
#include "backends/cuda/kernels/image.h"

enum { ROWS, TOTAL }; /* variants of softmax_xent */
enum { LONG = 1024, WARPS = 8, LANES = 32, MOST_BLOCKS = 1 << 16 };

/* Threads of a block, and blocks for `groups` groups of threads. */
static gy_grid grid_of(int64_t width, int64_t groups)
{
    if (width > LONG)
        return (gy_grid){ (unsigned)groups, 1, 1, WARPS * LANES, 1, 1 };
    return (gy_grid){ (unsigned)((groups + WARPS - 1) / WARPS), 1, 1, LANES, WARPS, 1 };
}

static gantry_status launch_softmax_xent(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    double scale = l->arg[0].number;
    const void *x = logits->data, *labels = l->arg[2].data;
    void *loss = l->arg[3].data, *partial = l->scratch;
    int32_t *status = l->status;
    int64_t rows = logits->rows, width = gy_arg_width(logits), most = (int64_t)(l->scratch_bytes / sizeof(double));
    int32_t groups = (int32_t)(rows < most ? rows : most);
    if (groups == 0)
        return rows == 0 ? GANTRY_OK : GANTRY_E_KERNEL;
    gantry_status failed = gy_cuda_image_launch(l, ROWS, logits->dtype, grid_of(width, groups),
                                                (void *[]){ &x, &labels, &partial, &rows, &width, &groups, &status });
    return failed ? failed
                  : gy_cuda_image_launch(l, TOTAL, logits->dtype, (gy_grid){ 1, 1, 1, WARPS * LANES, 1, 1 },
                                         (void *[]){ &scale, &partial, &groups, &loss });
}

static const gy_cuda_image image_softmax_xent = { gy_fatbin_softmax_xent, GY_WIDE_DTYPES, { "_rows", "_total" } };
const gy_cuda_kernel gy_cuda_kernel_softmax_xent = { .name = "softmax_xent",
                                                     .launch = launch_softmax_xent,
                                                     .open = gy_cuda_image_open,
                                                     .close = gy_cuda_image_close,
                                                     .data = &image_softmax_xent };

static gantry_status launch_softmax_xent_grad(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    double scale = l->arg[0].number;
    const void *x = logits->data, *labels = l->arg[2].data;
    void *grad = l->arg[3].data;
    int64_t rows = logits->rows, width = gy_arg_width(logits);
    return gy_cuda_image_launch(l, 0, logits->dtype, grid_of(width, rows < MOST_BLOCKS ? rows : MOST_BLOCKS),
                                (void *[]){ &scale, &x, &labels, &grad, &rows, &width });
}

static const gy_cuda_image image_softmax_xent_grad = { gy_fatbin_softmax_xent_grad, GY_WIDE_DTYPES, { "" } };
const gy_cuda_kernel gy_cuda_kernel_softmax_xent_grad = { .name = "softmax_xent_grad",
                                                          .launch = launch_softmax_xent_grad,
                                                          .open = gy_cuda_image_open,
                                                          .close = gy_cuda_image_close,
                                                          .data = &image_softmax_xent_grad };
