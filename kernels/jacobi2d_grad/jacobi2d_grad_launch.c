/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/jacobi_grad_launch.h"

GY_CUDA_KERNEL(jacobi2d_grad, gy_jacobi_grad_launch, GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64), "")
