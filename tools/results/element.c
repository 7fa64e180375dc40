/* SPDX-License-Identifier: Apache-2.0 */
/* One element of an array: its value, its text. */
#include "results.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* IEEE binary16, bfloat16 and floating point of 8 bits have no C type. */
static double from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h >> 15 ? -1 : 1;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Of 4 bits of exponent and 3 of fraction (E4M3): all bits set are NaN, and nothing is infinite. */
static double from_f8e4m3(uint8_t b)
{
    int exponent = b >> 3 & 15, fraction = b & 7;
    double sign = b >> 7 ? -1 : 1;
    if ((b & 127) == 127)
        return (double)NAN;
    return sign * (exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9));
}

double element_real(const void *data, gantry_dtype dtype, uint64_t i)
{
    switch (dtype) {
    case GANTRY_F16:
        return from_f16(((const uint16_t *)data)[i]);
    case GANTRY_BF16:
        return from_bf16(((const uint16_t *)data)[i]);
    case GANTRY_F8E4M3:
        return from_f8e4m3(((const uint8_t *)data)[i]);
    case GANTRY_F8E5M2: /* the upper half of f16 */
        return from_f16((uint16_t)(((const uint8_t *)data)[i] << 8));
    case GANTRY_F32:
        return (double)((const float *)data)[i];
    case GANTRY_F64:
        return ((const double *)data)[i];
    case GANTRY_I8:
        return ((const int8_t *)data)[i];
    case GANTRY_U8:
        return ((const uint8_t *)data)[i];
    case GANTRY_I32:
        return ((const int32_t *)data)[i];
    case GANTRY_U32:
        return ((const uint32_t *)data)[i];
    case GANTRY_I64:
        return (double)((const int64_t *)data)[i];
    case GANTRY_U64:
        return (double)((const uint64_t *)data)[i];
    default:
        return 0;
    }
}

static char *real_text(char *to, double x, int digits)
{
    if (isnan(x))
        snprintf(to, ELEMENT_TEXT, "nan");
    else
        snprintf(to, ELEMENT_TEXT, "%.*g", digits, x);
    return to;
}

static bool reads_back(const char *text, double x, bool is_double)
{
    return is_double ? strtod(text, NULL) == x : (double)strtof(text, NULL) == x;
}

/* Digits up to FLT_DIG and DBL_DIG survive, so that many suffice where fewer do; more are added until the number is
 * told from its neighbours. Halves are written as the floats that they are. */
static char *real_exact(char *to, double x, bool is_double)
{
    int digits = is_double ? DBL_DIG : FLT_DIG, most = is_double ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG;
    real_text(to, x, digits);
    while (isfinite(x) && digits < most && !reads_back(to, x, is_double))
        real_text(to, x, ++digits);
    return to;
}

static char *whole_text(char *to, const array *a, uint64_t i)
{
    if (a->dtype == GANTRY_U64)
        snprintf(to, ELEMENT_TEXT, "%" PRIu64, ((const uint64_t *)a->data)[i]);
    else if (a->dtype == GANTRY_I64)
        snprintf(to, ELEMENT_TEXT, "%" PRId64, ((const int64_t *)a->data)[i]);
    else
        snprintf(to, ELEMENT_TEXT, "%.0f", element_real(a->data, a->dtype, i));
    return to;
}

bool element_is_real(gantry_dtype dtype)
{
    return dtype == GANTRY_F16 || dtype == GANTRY_BF16 || dtype == GANTRY_F32 || dtype == GANTRY_F64 ||
           dtype == GANTRY_F8E4M3 || dtype == GANTRY_F8E5M2;
}

char *element_text(char to[ELEMENT_TEXT], const array *a, uint64_t i)
{
    return element_is_real(a->dtype) ? real_text(to, element_real(a->data, a->dtype, i), 6) : whole_text(to, a, i);
}

char *element_exact(char to[ELEMENT_TEXT], const array *a, uint64_t i)
{
    if (!element_is_real(a->dtype))
        return whole_text(to, a, i);
    return real_exact(to, element_real(a->data, a->dtype, i), a->dtype == GANTRY_F64);
}

void print_shape(FILE *to, const array *a)
{
    fprintf(to, "%s [", gantry_dtype_name(a->dtype));
    for (int i = 0; i < a->rank; i++)
        fprintf(to, "%s%" PRId64, i ? ", " : "", a->shape[i]);
    fprintf(to, "]");
}
