/* SPDX-License-Identifier: Apache-2.0 */
/* Time inside the library: whole picoseconds in 64 bits (106 days), the same on every compiler. */
#ifndef GY_BASE_TICKS_H
#define GY_BASE_TICKS_H

#include <stdint.h>

typedef int64_t gy_ticks; /* picoseconds */
#define GY_TICKS_PER_US INT64_C(1000000)
#define GY_TICKS_MAX    (INT64_MAX / 4) /* "never"; sums of two do not overflow */

/* Rounded to nearest, halves up; saturates at GY_TICKS_MAX; negative and NaN give 0. */
gy_ticks gy_ticks_from_us(double us);
static inline double gy_ticks_to_us(gy_ticks t)
{
    return (double)t / (double)GY_TICKS_PER_US;
}
/* As often as that, and one after the other; saturate at GY_TICKS_MAX. None is negative. */
static inline gy_ticks gy_ticks_repeated(gy_ticks t, int64_t count)
{
    return t > 0 && count > GY_TICKS_MAX / t ? GY_TICKS_MAX : t * count;
}
static inline gy_ticks gy_ticks_both(gy_ticks a, gy_ticks b)
{
    return a > GY_TICKS_MAX || b > GY_TICKS_MAX - a ? GY_TICKS_MAX : a + b;
}
/* amount / (rate per second), rounded up, in 128-bit arithmetic: bytes over bytes/s. rate <= 0 gives GY_TICKS_MAX. */
gy_ticks gy_ticks_of(uint64_t amount, int64_t rate_per_s);

#endif
