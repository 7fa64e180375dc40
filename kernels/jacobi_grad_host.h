/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_JACOBI_GRAD_HOST_H
#define GY_KERNELS_JACOBI_GRAD_HOST_H

#include <gantry/kernel.h>

gantry_status gy_jacobi_grad_run(const gantry_launch *launch);

#endif
