/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as doubles and back. Narrowing rounds to nearest, ties to even, once; integers round towards zero and
 * saturate (NaN gives 0). */
#ifndef GY_RUN_NUMBER_H
#define GY_RUN_NUMBER_H

#include "kernel/dtype.h"
#include <stdint.h>

/* base/half.h has the conversions from and to float. */
uint16_t gy_f16_from_f64(double value);
uint16_t gy_bf16_from_f64(double value);

/* Element i of an array. 64-bit integers beyond 2^53 are rounded on the way to a double. */
double gy_element_load(const void *array, gantry_dtype dtype, uint64_t i);
void gy_element_store(void *array, gantry_dtype dtype, uint64_t i, double value);

#endif
