/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include <string.h>

static int load(double *to, int most, const gantry_arg *a, int64_t i, int64_t end)
{
    int count = (int)(end - i < most ? end - i : most);
    memset(to + count, 0, (size_t)(most - count) * sizeof *to);
    switch (a->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int k = 0; k < count; k++)                                                                                \
            to[k] = (double)LOAD(((const type *)a->data)[i + k]);                                                      \
        break;
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
    return count;
}

int gy_lanes_load(gy_lanes *to, int lanes, const gantry_arg *a, int64_t i, int64_t end)
{
    return load(to->at, lanes, a, i, end);
}

int gy_packs_load(gy_packs *to, int most, const gantry_arg *a, int64_t i, int64_t end)
{
    return load(to->at, most, a, i, end);
}

void gy_packs_store(const gy_packs *from, const gantry_arg *a, int64_t i, int count)
{
    switch (a->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int k = 0; k < count; k++)                                                                                \
            ((type *)a->data)[i + k] = STORE((wide)from->at[k]);                                                       \
        break;
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
}

void gy_lanes_add(const gy_lanes *from, const gantry_arg *a, int64_t i, int count)
{
    switch (a->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int k = 0; k < count; k++) {                                                                              \
            type *x = (type *)a->data + i + k;                                                                         \
            *x = STORE(LOAD(*x) + (wide)from->at[k]);                                                                  \
        }                                                                                                              \
        break;
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
}

double gy_lanes_sum(const gy_lanes *from, int lanes)
{
    gy_lanes sum = *from;
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum.at[k] += sum.at[k + half];
    return sum.at[0];
}
