/* SPDX-License-Identifier: Apache-2.0 */
/* A scalar as kernels for GPUs get it: those of integers the whole number, with every digit. */
#ifndef GY_KERNELS_MULTIPLIER_H
#define GY_KERNELS_MULTIPLIER_H

#include <stdint.h>

typedef union gy_multiplier {
    double number;
    int64_t integer;
} gy_multiplier;

#endif
