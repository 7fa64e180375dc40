/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/jacobi_grad.cuh"

GY_JACOBI_GRAD_KERNEL(jacobi2d_grad_f32, 2, float)
GY_JACOBI_GRAD_KERNEL(jacobi2d_grad_f64, 2, double)
