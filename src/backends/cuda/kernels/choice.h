/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A kernel that can be launched in several ways: the first that can be used on this computer is taken when a run is
 * opened, and kept.
 *
 *     static const gy_cuda_choice gemm = { { &gy_library_gemm, &gy_plain_gemm } };
 *     const gy_cuda_kernel gy_cuda_kernel_gemm = GY_CHOICE_KERNEL("gemm", gemm);
 */
#ifndef GY_CUDA_KERNELS_CHOICE_H
#define GY_CUDA_KERNELS_CHOICE_H

#include "backends/cuda/kernels/kernels.h"

enum { GY_CHOICE_WAYS = 3 };

/* `data` of the kernel. */
typedef struct gy_cuda_choice {
    const gy_cuda_kernel *way[GY_CHOICE_WAYS + 1]; /* best first; ends with NULL */
} gy_cuda_choice;

gantry_status gy_cuda_choice_launch(const gantry_launch *l);
gantry_status gy_cuda_choice_open(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                  gantry_error *err);
gantry_status gy_cuda_choice_launch_batch(const gantry_launch *first, const gy_cuda_batch *batch);
bool gy_cuda_choice_batches(const void *handle);
bool gy_cuda_choice_early(void *handle, gy_early which);
bool gy_cuda_choice_loads(const void *handle);
bool gy_cuda_choice_keeps_word(const void *handle);
void gy_cuda_choice_close(void *handle);
/* E_UNSUPPORTED: no way can be used, with the reason that the first gives. */
gantry_status gy_cuda_choice_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err);
gantry_status gy_cuda_choice_prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err);
const char *gy_cuda_choice_why(const void *handle);

#define GY_CHOICE_KERNEL(name_, choice)                                                                                \
    {                                                                                                                  \
        .name = name_, .launch = gy_cuda_choice_launch, .open = gy_cuda_choice_open, .close = gy_cuda_choice_close,    \
        .data = &choice, .usable = gy_cuda_choice_usable, .prepare = gy_cuda_choice_prepare,                           \
        .why = gy_cuda_choice_why, .launch_batch = gy_cuda_choice_launch_batch, .batches = gy_cuda_choice_batches,     \
        .loads = gy_cuda_choice_loads, .early = gy_cuda_choice_early, .keeps_word = gy_cuda_choice_keeps_word          \
    }

#endif
