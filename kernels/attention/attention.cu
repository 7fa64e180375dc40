/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/attention.cuh"

GY_ATTENTION_KERNELS(attention)
