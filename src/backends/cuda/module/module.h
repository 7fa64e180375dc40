/* SPDX-License-Identifier: Apache-2.0 */
/* The module gantry-cuda.so: its back end and what it tells of this computer. */
#ifndef GY_CUDA_MODULE_MODULE_H
#define GY_CUDA_MODULE_MODULE_H

#include "run/backend.h"

extern const gy_backend gy_backend_cuda;

/* ---- usable.c ---- */

/* OK if a schedule can run here; NULL: if any can. */
gantry_status gy_cuda_usable(const gantry_schedule *schedule, gantry_error *err);

/* ---- describe.c, describe_linalg.c ---- */

/* See gy_backend_module. */
void gy_cuda_describe(gy_text *to);
/* A line each on cuBLAS, cuSOLVER and cuFFT; `driver` is its CUDA version, 0: it does not tell. */
void gy_linalg_describe(gy_text *to, int driver);

#endif
