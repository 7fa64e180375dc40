/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ticks.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

gy_ticks gy_ticks_from_us(double us)
{
    if (!(us > 0))
        return 0;
    double ticks = us * (double)GY_TICKS_PER_US;
    if (ticks >= (double)GY_TICKS_MAX)
        return GY_TICKS_MAX;
    /* floor(x + 0.5) would round 0.49999999999999994 up: the sum is not exact, the difference is. */
    double whole = floor(ticks);
    return (gy_ticks)whole + (ticks - whole >= 0.5);
}

gy_ticks gy_ticks_of(uint64_t amount, int64_t rate_per_s)
{
    if (rate_per_s <= 0)
        return GY_TICKS_MAX;
    uint64_t product; /* of small amounts: a division of 64 bits takes a tenth of the time */
    if (!__builtin_mul_overflow(amount, 1000000u * (uint64_t)GY_TICKS_PER_US, &product) &&
        product <= UINT64_MAX - (uint64_t)rate_per_s) {
        uint64_t small = (product + (uint64_t)rate_per_s - 1) / (uint64_t)rate_per_s;
        return small < (uint64_t)GY_TICKS_MAX ? (gy_ticks)small : GY_TICKS_MAX;
    }
    wide rate = (wide)rate_per_s;
    wide ticks = ((wide)amount * 1000000u * (uint64_t)GY_TICKS_PER_US + rate - 1) / rate;
    return ticks < (wide)GY_TICKS_MAX ? (gy_ticks)ticks : GY_TICKS_MAX;
}
