/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "kernels/gate/gate.h"

/* One argument: a word, `write` to set it, else it is waited for. */
static gantry_status launch_gate(const gantry_launch *l)
{
    const gantry_arg *word = &l->arg[0];
    bool sets = word->access == GANTRY_WRITE;
    gy_gate_few list = { .words = (uint64_t)(uintptr_t)word->data };
    if (word->rows != 1)
        return GANTRY_E_UNSUPPORTED;
    return gy_cuda_image_launch(l, sets ? GY_GATE_SETS : GY_GATE_WAITS, (gantry_dtype)0, (gy_grid){ 1, 1, 1, 1, 1, 1 },
                                (void *[]){ sets ? &list.words : (void *)&list });
}

/* Its functions have other names than it has in the table. */
static gantry_status open_gate(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "gate", .data = kernel->data };
    GY_TRY(gy_cuda_image_open(handle, &code, driver, err));
    gantry_status status = gy_cuda_image_find_all(*handle, err);
    if (status)
        gy_cuda_image_close(*handle);
    return status;
}

static const gy_cuda_image image = { .code = gy_fatbin_gate,
                                     .dtypes = 0,
                                     .variant = { "_set", "_wait", "_wait_long", "_copy" } };
const gy_cuda_kernel gy_cuda_kernel_gate = { .name = GY_CUDA_GATE,
                                             .launch = launch_gate,
                                             .open = open_gate,
                                             .close = gy_cuda_image_close,
                                             .data = &image,
                                             .function = gy_cuda_image_function,
                                             .why = gy_cuda_image_why };
