/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of all types: made, read, compared. */
#include "problems.h"

#include <math.h>
#include <string.h>

bool is_float(gantry_dtype d)
{
    return d == GANTRY_F16 || d == GANTRY_BF16 || d == GANTRY_F32 || d == GANTRY_F64;
}

double unit_of(gantry_dtype d)
{
    return d == GANTRY_F16    ? 0x1p-11
           : d == GANTRY_BF16 ? 0x1p-8
           : d == GANTRY_F32  ? 0x1p-24
           : d == GANTRY_F64  ? 0x1p-53
                              : 0;
}

int64_t elements_of(const operand *o)
{
    int64_t n = 1;
    for (int i = 0; i < o->rank; i++)
        n *= o->shape[i];
    return n;
}

/* ---- storing and reading ---- */

/* 5 bits of exponent and 10 of fraction; what is stored here is exact or cut. */
static uint16_t to_f16(double x)
{
    int exponent = 0;
    double fraction = frexp(fabs(x), &exponent); /* [1/2, 1) */
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (x == 0)
        return sign;
    if (exponent - 1 < -14)
        return (uint16_t)(sign | (uint16_t)ldexp(fraction, exponent + 24));
    return (uint16_t)(sign | (uint16_t)((exponent + 14) << 10) | ((uint16_t)ldexp(fraction, 11) & 0x3FF));
}

static double from_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double value = exponent == 31 ? (bits & 0x3FF ? NAN : INFINITY)
                   : exponent     ? ldexp(0x400 | (bits & 0x3FF), exponent - 25)
                                  : ldexp(bits & 0x3FF, -24);
    return bits & 0x8000 ? -value : value;
}

static void store_float(void *data, gantry_dtype d, int64_t i, double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    switch (d) {
    case GANTRY_F16:
        ((uint16_t *)data)[i] = to_f16(x);
        break;
    case GANTRY_BF16:
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    case GANTRY_F32:
        ((float *)data)[i] = f;
        break;
    default:
        ((double *)data)[i] = x;
        break;
    }
}

static void store_integer(void *data, gantry_dtype d, int64_t i, uint64_t x)
{
    size_t size = gantry_dtype_size(d);
    memcpy((char *)data + (size_t)i * size, &x, size); /* little endian */
}

double element_at(const void *data, gantry_dtype d, int64_t i)
{
    uint32_t bits;
    float f;
    switch (d) {
    case GANTRY_F16:
        return from_f16(((const uint16_t *)data)[i]);
    case GANTRY_BF16:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
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
    default:
        return (double)((const uint64_t *)data)[i];
    }
}

/* ---- making ---- */

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(draw(state) >> 11) * 0x1p-53;
}

static double any_float(uint64_t *state)
{
    uint64_t kind = draw(state) % 40;
    double x = uniform(state, -4, 4);
    return kind == 0 ? 0.0 : kind == 1 ? -0.0 : kind == 2 ? x * 0x1p-17 : x; /* the last is denormal in f16 */
}

/* Of a square matrix of order n, by index; the upper triangle has the numbers of the lower one. */
static double of_matrix(const operand *o, int64_t i, uint64_t seed)
{
    int64_t n = o->shape[1], row = i / n, column = i % n;
    uint64_t state = seed + (uint64_t)(row > column ? row * n + column : column * n + row);
    if (o->filling == POSITIVE)
        return row == column ? (double)n : uniform(&state, -0.5, 0.5);
    if (o->filling == PIVOTED)
        return (row + 3) % n == column ? (double)n : uniform(&state, -0.5, 0.5);
    return row == column ? uniform(&state, 2, 3) : uniform(&state, -1, 1) / (double)n;
}

static void fill_one(const operand *o, void *data, int64_t at, int64_t i, uint64_t seed, uint64_t *state)
{
    int64_t n = elements_of(o);
    bool inside = i >= 0 && i < n;
    if (!inside || o->filling == ANY)
        if (is_float(o->dtype))
            store_float(data, o->dtype, at, any_float(state));
        else
            store_integer(data, o->dtype, at, draw(state));
    else if (o->filling == PIXELS && is_float(o->dtype))
        store_float(data, o->dtype, at, (double)(draw(state) % 256));
    else if (o->filling == POSITIVE || o->filling == PIVOTED || o->filling == TRIANGLE)
        store_float(data, o->dtype, at, of_matrix(o, i, seed));
    else if (o->filling == FROM)
        store_float(data, o->dtype, at, uniform(state, (double)o->below, (double)o->below + 1));
    else if (o->filling == PIVOTS)
        store_integer(data, o->dtype, at, (uint64_t)(i + 1) + draw(state) % (uint64_t)(n - i));
    else if (o->filling == SORTED && is_float(o->dtype))
        store_float(data, o->dtype, at, (double)(i * 100 / n) - 50);
    else if (o->filling == SORTED)
        store_integer(data, o->dtype, at, (uint64_t)(i * 100 / n));
    else if (o->filling == STARTS)
        store_integer(data, o->dtype, at, (uint64_t)(i * i * o->below / (n > 1 ? (n - 1) * (n - 1) : 1)));
    else
        store_integer(data, o->dtype, at, draw(state) % (uint64_t)(o->filling == PIXELS ? 256 : o->below));
}

void fill_operand(const operand *o, void *data, int64_t before, int64_t after, uint64_t seed)
{
    uint64_t state = seed * 0x2545F4914F6CDD1Du;
    for (int64_t i = -before; i < elements_of(o) + after; i++)
        fill_one(o, data, i + before, i, seed << 32, &state);
}

/* ---- comparing ---- */

double largest_of(const void *data, gantry_dtype d, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(element_at(data, d, i)));
    return largest;
}

int64_t first_wrong(const void *got, const void *want, gantry_dtype d, int64_t count, bound b)
{
    size_t size = gantry_dtype_size(d);
    for (int64_t i = 0; i < count; i++) {
        double g = element_at(got, d, i), w = element_at(want, d, i);
        bool equal = memcmp((const char *)got + (size_t)i * size, (const char *)want + (size_t)i * size, size) == 0;
        bool may_differ = b.relative > 0 || b.absolute > 0;
        if (!equal && !(may_differ && fabs(g - w) <= b.relative * fabs(w) + b.absolute))
            return i;
    }
    return -1;
}
