/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/jacobi_grad.cuh"

GY_JACOBI_GRAD_KERNEL(jacobi3d_grad_f32, 3, float)
GY_JACOBI_GRAD_KERNEL(jacobi3d_grad_f64, 3, double)
