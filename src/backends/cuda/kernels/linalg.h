/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gemm, potrf, trsm, syrk and others on GPUs. Matrices are in C order and the libraries read columns, so what they are
 * given is the transpose: a lower triangle is an upper one to them. A region's rows follow each other without gaps, so
 * that the leading dimension is the width of a row.
 */
#ifndef GY_CUDA_KERNELS_LINALG_H
#define GY_CUDA_KERNELS_LINALG_H

#include "backends/cuda/kernels/kernels.h"

/* By NVIDIA's libraries: what launch_linalg.c chooses from. */
#define KERNEL(name)
#define DEVICE(name)
#define LIBRARY(name)  extern const gy_cuda_kernel gy_library_##name;
#define PRODUCTS(name) LIBRARY(name) extern const gy_cuda_kernel gy_products_##name, gy_else_##name;
#include "kernels/kernels.def"

/* As cuDriverGetVersion; 0: the driver does not tell. */
int gy_linalg_driver_version(const gy_driver *driver);

/* A library that is there made no handle. E_DEVICE: `why`, and what the driver is for. */
gantry_status gy_linalg_fail(const char *why, int driver_version, gantry_error *err);

/* The `loads` of their kernels. */
bool gy_linalg_loads(const void *handle);

typedef struct gy_gpu_matrix {
    void *data;
    int rows, columns, ld;
} gy_gpu_matrix;

/* The libraries count rows and columns with ints. E_UNSUPPORTED: a matrix of the launch has more. */
gantry_status gy_linalg_check_sizes(const gantry_launch *l, gantry_error *err);
/* Of an argument that was checked. */
gy_gpu_matrix gy_gpu_matrix_of(const gantry_arg *arg);

#endif
