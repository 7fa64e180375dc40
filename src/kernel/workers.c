/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/registry.h"
#include <string.h>

/* Of the library; tests hold it against kernels/resident/functions.def. */
static const char *const known[] = { "add",      "axpby", "bias_add",   "busy",       "copy",     "dot",
                                     "jacobi2d", "mul",   "reduce_max", "reduce_sum", "relu",     "relu_grad",
                                     "saxpy",    "scale", "sgd_update", "spmv_csr",   "transpose" };

bool gy_kernel_for_workers(const gy_kernel *kernel)
{
    if (kernel->program)
        return true; /* formulas are compiled for them */
    if (kernel->code)
        return kernel->manifest->flags & GANTRY_KERNEL_RESIDENT;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], kernel->manifest->name) == 0)
            return true;
    return false;
}
