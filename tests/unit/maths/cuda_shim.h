/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C of formulas as C++ of the CPU: what a thread is, and the functions that round as they say. Contraction is off
 * in the build, so plain operators do. */
#ifndef TEST_UNIT_MATHS_CUDA_SHIM_H
#define TEST_UNIT_MATHS_CUDA_SHIM_H

#include <cmath>
#include <cstring>

using std::ceil;
using std::floor;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)

struct place {
    unsigned x;
};
static place threadIdx, blockIdx;

template <class To, class From> static inline To same_bits(From x)
{
    To to;
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    std::memcpy(&to, &x, sizeof to);
    return to;
}
#define __uint_as_float(x)      same_bits<float>((unsigned)(x))
#define __float_as_uint(x)      same_bits<unsigned>((float)(x))
#define __longlong_as_double(x) same_bits<double>((long long)(x))
#define __ll2float_rn(x)        ((float)(long long)(x))
#define __ll2double_rn(x)       ((double)(long long)(x))
#define __double2float_rn(x)    ((float)(double)(x))
#define __fadd_rn(x, y)         ((float)(x) + (float)(y))
#define __fsub_rn(x, y)         ((float)(x) - (float)(y))
#define __fmul_rn(x, y)         ((float)(x) * (float)(y))
#define __fdiv_rn(x, y)         ((float)(x) / (float)(y))
#define __fsqrt_rn(x)           std::sqrt((float)(x))
#define __dadd_rn(x, y)         ((double)(x) + (double)(y))
#define __dsub_rn(x, y)         ((double)(x) - (double)(y))
#define __dmul_rn(x, y)         ((double)(x) * (double)(y))
#define __ddiv_rn(x, y)         ((double)(x) / (double)(y))
#define __dsqrt_rn(x)           std::sqrt((double)(x))

#endif
