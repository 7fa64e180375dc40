/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/box.h"
#include "kernels/jacobi_grad_host.h"
#include "kernels/manifest.h"

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_around(l, 3, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T',
              "adjoint of the volume after the step; what y has and one more on each side"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "adjoint of the volume before it"),
};

const gantry_kernel gy_kernel_jacobi3d_grad = { .struct_size = sizeof(gantry_kernel),
                                                .name = "jacobi3d_grad",
                                                .summary = "y = x times the matrix of a step of jacobi3d, transposed",
                                                GANTRY_KERNEL_ARGS(args),
                                                .flops = "10 * y.size",
                                                .bytes = "x.bytes + y.bytes",
                                                .host = gy_jacobi_grad_run,
                                                .check = check };
