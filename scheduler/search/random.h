/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look random and are the same everywhere: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef GY_SCHEDULER_SEARCH_RANDOM_H
#define GY_SCHEDULER_SEARCH_RANDOM_H

#include "base/map.h"
#include "base/ticks.h"

typedef struct gy_random {
    uint64_t state;
} gy_random;

static inline uint64_t gy_random_next(gy_random *r)
{
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return gy_hash64(r->state);
}

/* 0 .. n-1; n >= 1. */
static inline uint32_t gy_random_below(gy_random *r, uint32_t n)
{
    return (uint32_t)(((gy_random_next(r) >> 32) * n) >> 32);
}

/*
 * mean x an exponential variate, in integers: -ln u = ln 2 (leading zeros + 1 - log2 of the mantissa), and log2 between
 * two powers is taken to be a straight line (off by at most 0.09). libm is not the same everywhere.
 */
static inline gy_ticks gy_random_exponential(gy_random *r, gy_ticks mean)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t u = gy_random_next(r) | 1, zeros = (uint64_t)__builtin_clzll(u);
    uint64_t mantissa = (u << zeros) >> 47 & 0xffff;
    uint64_t minus_log2 = ((zeros + 1) << 16) - mantissa;
    return (gy_ticks)(((wide)(uint64_t)mean * minus_log2 * 45426) >> 32); /* ln 2 = 45426 / 2^16 */
}

#endif
