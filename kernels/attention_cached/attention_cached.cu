/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.cuh"
#include "kernels/attention/attention_row.cuh"

GY_ATTENTION_KERNELS(attention_cached)
#define ROW(suffix, type, wide) GY_ATTENTION_ROW_KERNEL(attention_cached, suffix, type, wide)
GY_CUDA_FLOAT_TYPES(ROW)
