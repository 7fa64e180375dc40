/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/host/check.h"

#include "run/number.h"
#include "run/reduce.h"
#include <math.h>
#include <string.h>

size_t gy_count_unwritten(const void *a, const void *b, size_t bytes, size_t *first)
{
    const unsigned char *x = a, *y = b;
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (x[i] == GY_POISON_A && y[i] == GY_POISON_B) {
            *first = count ? *first : i;
            count++;
        }
    }
    return count;
}

/* Four times as large as what the function contributes: a result without it is far off, while one that lost small
 * contributions to rounding is not. */
static double clear_start(gantry_dtype dtype, gantry_access op, double contribution)
{
    if (op == GANTRY_PROD)
        return 2;
    return !gy_dtype_is_float(dtype) ? 3 : isfinite(contribution) ? 4 * (fabs(contribution) + 1) : 4;
}

void gy_second_start(void *start, const void *first_result, gantry_dtype dtype, gantry_access op, uint64_t count)
{
    if (op == GANTRY_MIN || op == GANTRY_MAX) { /* the value that always wins */
        gy_fill_identity(start, dtype, op == GANTRY_MIN ? GANTRY_MAX : GANTRY_MIN, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        gy_element_store(start, dtype, i, clear_start(dtype, op, gy_element_load(first_result, dtype, i)));
}

/* Of the larger of both parts. Functions may add piece by piece in the dtype itself, which the 16-bit types bear badly.
 */
static double tolerance(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_F64:
        return 1e-6;
    case GANTRY_F32:
        return 1e-2;
    default:
        return 0.5;
    }
}

static bool is_close(gantry_dtype dtype, gantry_access op, double start, double contribution, double result)
{
    bool product = op == GANTRY_PROD;
    double expected = product ? start * contribution : start + contribution;
    double scale = product ? fabs(expected) : fabs(start) + fabs(contribution);
    if (isnan(contribution))
        return isnan(result); /* a NaN that the function contributes is in every sum */
    if (!isfinite(start) || !isfinite(contribution) || isinf(result))
        return true; /* says nothing */
    return fabs(result - expected) <= tolerance(dtype) * scale;
}

static bool is_exact(const void *start, const void *contribution, const void *result, gantry_dtype dtype,
                     gantry_access op, uint64_t i)
{
    if (isnan(gy_element_load(contribution, dtype, i)))
        return true; /* MIN and MAX of a NaN: kernels differ */
    size_t size = gantry_dtype_size(dtype);
    uint64_t expected = 0;
    const void *from[] = { (const char *)start + i * size, (const char *)contribution + i * size };
    gy_reduce(dtype, op, &expected, from, 2, 1);
    return memcmp(&expected, (const char *)result + i * size, size) == 0;
}

uint64_t gy_find_not_added(const void *start, const void *contribution, const void *result, gantry_dtype dtype,
                           gantry_access op, uint64_t count)
{
    bool rounds = gy_dtype_is_float(dtype) && (op == GANTRY_SUM || op == GANTRY_PROD);
    for (uint64_t i = 0; i < count; i++) {
        bool fine = rounds ? is_close(dtype, op, gy_element_load(start, dtype, i),
                                      gy_element_load(contribution, dtype, i), gy_element_load(result, dtype, i))
                           : is_exact(start, contribution, result, dtype, op, i);
        if (!fine)
            return i;
    }
    return UINT64_MAX;
}
