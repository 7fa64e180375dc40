/* SPDX-License-Identifier: Apache-2.0 */
/**
 * qr(a, q, r) in steps: turned into columns, factored there, r taken, q made of the reflections, turned back. cuSOLVER
 * does the second and the fourth. Tall matrices with few columns are factored in blocks of rows, without a library
 * (kernels/qr/tall.cuh). The launch's handle is that of gy_plain_qr.
 */
#ifndef GY_CUDA_KERNELS_PLAIN_QR_H
#define GY_CUDA_KERNELS_PLAIN_QR_H

#include "backends/cuda/kernels/plain.h"

/* The launch's scratch: m x n elements by columns, n factors of reflections, n signs of rows of r, then
 * what a library wants. `bytes`: of all but the last; known before there are addresses. */
typedef struct gy_qr_scratch {
    void *columns, *tau, *sign, *rest;
    uint64_t bytes;
} gy_qr_scratch;
gy_qr_scratch gy_qr_scratch_of(const gantry_launch *l);

/* As `prepare` of a kernel: the scratch without a library's. */
gantry_status gy_plain_qr_prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err);
gantry_status gy_plain_qr_begin(const gantry_launch *l);
gantry_status gy_plain_qr_upper(const gantry_launch *l);
gantry_status gy_plain_qr_end(const gantry_launch *l);

/* Is it one that is factored in blocks of rows? Then gy_plain_qr_launch does that, in the scratch that
 * gy_plain_qr_prepare asks for. */
bool gy_plain_qr_is_tall(const gantry_launch *l);

#endif
