/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that nvcc gives every kernel, for a C++ compiler: included before the source of the kernel, which is the
 * one that nvcc compiles. Types come from the toolkit, half types too: their conversions have host versions there.
 *
 * Not here: dynamic shared memory, cooperative groups (cooperative launches are), assembler, textures, __activemask.
 * Variables of a device that are no shared memory and no constants do not keep what they hold.
 */
#ifndef CUDA_EMULATOR_DEVICE_H
#define CUDA_EMULATOR_DEVICE_H

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator.h"

#include <vector_types.h>

#include <vector_functions.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#undef __global__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __constant__
#ifdef CUDA_EMULATOR_NAMES /* the preprocessor only: kernels.py looks for it */
#define __global__             CUDA_EMULATOR_GLOBAL
#define __launch_bounds__(...) CUDA_EMULATOR_BOUNDS __VA_ARGS__ CUDA_EMULATOR_END
#else
#define __global__ __attribute__((visibility("default")))
#define __launch_bounds__(...)
#endif
#define __shared__      static
#define __forceinline__ inline
#define __grid_constant__
#define __constant__
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

#define EMULATED      static inline __attribute__((unused))
#define EMULATED_LINE int line = __builtin_LINE()

/* ---- barriers, fences ---- */

EMULATED void __syncthreads(EMULATED_LINE)
{
    emulator_meet(EMULATOR_BLOCK, 0, 0, 0, line);
}
EMULATED int __syncthreads_count(int value, EMULATED_LINE)
{
    return (int)emulator_meet(EMULATOR_BLOCK, 0, value != 0, 0, line);
}
EMULATED int __syncthreads_or(int value, EMULATED_LINE)
{
    return __syncthreads_count(value, line) != 0;
}
EMULATED int __syncthreads_and(int value, EMULATED_LINE)
{
    return __syncthreads_count(!value, line) == 0;
}
EMULATED void __syncwarp(unsigned mask = ~0u, EMULATED_LINE)
{
    emulator_meet(EMULATOR_WARP, mask, 0, 0, line);
}
EMULATED void emulator_begin(void)
{
    emulator_began();
}
EMULATED void __threadfence()
{
    emulator_fence();
}
EMULATED void __threadfence_block() {}
EMULATED void __threadfence_system()
{
    emulator_fence();
}
EMULATED void __nanosleep(unsigned) {}
[[noreturn]] EMULATED void __trap(EMULATED_LINE)
{
    emulator_trap(line);
}

/* ---- within a warp ---- */

template <typename T> static inline T emulator_from_lane(unsigned mask, T value, int lane, int line)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes go through a shuffle");
    uint64_t bits = 0;
    T result;
    std::memcpy(&bits, &value, sizeof value);
    bits = emulator_meet(EMULATOR_LANE, mask, bits, lane, line);
    std::memcpy(static_cast<void *>(&result), &bits, sizeof result);
    return result;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, EMULATED_LINE)
{
    int first = emulator_lane() & ~(width - 1);
    return emulator_from_lane(mask, value, first + (from & (width - 1)), line);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_LINE)
{
    int lane = emulator_lane(), from = lane - (int)by;
    return emulator_from_lane(mask, value, from < (lane & ~(width - 1)) ? lane : from, line);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_LINE)
{
    int lane = emulator_lane(), from = lane + (int)by;
    return emulator_from_lane(mask, value, from > (lane | (width - 1)) ? lane : from, line);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, EMULATED_LINE)
{
    int lane = emulator_lane(), from = lane ^ by;
    return emulator_from_lane(mask, value, from > (lane | (width - 1)) ? lane : from, line);
}

EMULATED unsigned __ballot_sync(unsigned mask, int value, EMULATED_LINE)
{
    return (unsigned)emulator_meet(EMULATOR_BALLOT, mask, value != 0, 0, line);
}
EMULATED int __any_sync(unsigned mask, int value, EMULATED_LINE)
{
    return __ballot_sync(mask, value, line) != 0;
}
EMULATED int __all_sync(unsigned mask, int value, EMULATED_LINE)
{
    return __ballot_sync(mask, !value, line) == 0;
}

#define EMULATED_REDUCE(name, type, what)                                                                              \
    EMULATED type __reduce_##name##_sync(unsigned mask, type value, EMULATED_LINE)                                     \
    {                                                                                                                  \
        return (type)emulator_meet(what, mask, (uint64_t)value, 0, line);                                              \
    }
EMULATED_REDUCE(add, int, EMULATOR_SUM)
EMULATED_REDUCE(add, unsigned, EMULATOR_SUM)
EMULATED_REDUCE(and, unsigned, EMULATOR_AND)
EMULATED_REDUCE(or, unsigned, EMULATOR_OR)
EMULATED_REDUCE(xor, unsigned, EMULATOR_XOR)
EMULATED_REDUCE(min, int, EMULATOR_MIN_S)
EMULATED_REDUCE(max, int, EMULATOR_MAX_S)
EMULATED_REDUCE(min, unsigned, EMULATOR_MIN_U)
EMULATED_REDUCE(max, unsigned, EMULATOR_MAX_U)

/* ---- atomics: threads do not run at once ---- */

template <typename T> struct emulator_same {
    typedef T type;
};
#define EMULATED_ATOMIC(name, expression)                                                                              \
    template <typename T> static inline T name(T *at, typename emulator_same<T>::type value)                           \
    {                                                                                                                  \
        emulator_before(at, sizeof *at);                                                                               \
        T old = *at;                                                                                                   \
        *at = (T)(expression);                                                                                         \
        emulator_after(at, sizeof *at);                                                                                \
        return old;                                                                                                    \
    }                                                                                                                  \
    template <typename T> static inline T name##_block(T *at, typename emulator_same<T>::type value)                   \
    {                                                                                                                  \
        return name(at, value);                                                                                        \
    }                                                                                                                  \
    template <typename T> static inline T name##_system(T *at, typename emulator_same<T>::type value)                  \
    {                                                                                                                  \
        return name(at, value);                                                                                        \
    }
EMULATED_ATOMIC(atomicAdd, old + value)
EMULATED_ATOMIC(atomicSub, old - value)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicMax, value > old ? value : old)
EMULATED_ATOMIC(atomicAnd, old &value)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicXor, old ^ value)
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
EMULATED_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T>
static inline T atomicCAS(T *at, typename emulator_same<T>::type expected, typename emulator_same<T>::type value)
{
    emulator_before(at, sizeof *at);
    T old = *at;
    *at = std::memcmp(&old, &expected, sizeof old) == 0 ? value : old;
    emulator_after(at, sizeof *at);
    return old;
}

/* ---- numbers ---- */

template <typename A, typename B> static inline constexpr typename std::common_type<A, B>::type emulator_min(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)a < (T)b || (T)b != (T)b ? (T)a : (T)b; /* a number rather than none, as fmin */
}
template <typename A, typename B> static inline constexpr typename std::common_type<A, B>::type emulator_max(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)a > (T)b || (T)b != (T)b ? (T)a : (T)b;
}
template <typename A, typename B, typename = typename std::enable_if<std::is_arithmetic<A>::value>::type,
          typename = typename std::enable_if<std::is_arithmetic<B>::value>::type>
static inline constexpr typename std::common_type<A, B>::type min(A a, B b)
{
    return emulator_min(a, b);
}
template <typename A, typename B, typename = typename std::enable_if<std::is_arithmetic<A>::value>::type,
          typename = typename std::enable_if<std::is_arithmetic<B>::value>::type>
static inline constexpr typename std::common_type<A, B>::type max(A a, B b)
{
    return emulator_max(a, b);
}

template <typename To, typename From> static inline To emulator_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
EMULATED int __float_as_int(float x)
{
    return emulator_bits<int>(x);
}
EMULATED unsigned __float_as_uint(float x)
{
    return emulator_bits<unsigned>(x);
}
EMULATED float __int_as_float(int x)
{
    return emulator_bits<float>(x);
}
EMULATED float __uint_as_float(unsigned x)
{
    return emulator_bits<float>(x);
}
EMULATED long long __double_as_longlong(double x)
{
    return emulator_bits<long long>(x);
}
EMULATED double __longlong_as_double(long long x)
{
    return emulator_bits<double>(x);
}
EMULATED int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
EMULATED int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
EMULATED int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
EMULATED int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
EMULATED int __ffs(int x)
{
    return __builtin_ffs(x);
}
EMULATED int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
EMULATED unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
EMULATED int __mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}
__extension__ typedef unsigned __int128 emulator_u128;
EMULATED unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((emulator_u128)a * b >> 64);
}

#define EMULATED_ROUNDED(type, f)                                                                                      \
    EMULATED type __##f##add_rn(type a, type b)                                                                        \
    {                                                                                                                  \
        return a + b;                                                                                                  \
    }                                                                                                                  \
    EMULATED type __##f##sub_rn(type a, type b)                                                                        \
    {                                                                                                                  \
        return a - b;                                                                                                  \
    }                                                                                                                  \
    EMULATED type __##f##mul_rn(type a, type b)                                                                        \
    {                                                                                                                  \
        return a * b;                                                                                                  \
    }                                                                                                                  \
    EMULATED type __##f##div_rn(type a, type b)                                                                        \
    {                                                                                                                  \
        return a / b;                                                                                                  \
    }                                                                                                                  \
    EMULATED type __##f##sqrt_rn(type a)                                                                               \
    {                                                                                                                  \
        return std::sqrt(a);                                                                                           \
    }                                                                                                                  \
    EMULATED type __##f##rcp_rn(type a)                                                                                \
    {                                                                                                                  \
        return 1 / a;                                                                                                  \
    }
EMULATED_ROUNDED(float, f)
EMULATED_ROUNDED(double, d)
EMULATED float __fmaf_rn(float a, float b, float c)
{
    return std::fma(a, b, c);
}
EMULATED double __fma_rn(double a, double b, double c)
{
    return std::fma(a, b, c);
}
EMULATED float rsqrtf(float x)
{
    return 1 / std::sqrt(x);
}
EMULATED double rsqrt(double x)
{
    return 1 / std::sqrt(x);
}
EMULATED float __fdividef(float a, float b)
{
    return a / b;
}
EMULATED float __saturatef(float x)
{
    return x > 1 ? 1 : x > 0 ? x : 0;
}
EMULATED int __float2int_rn(float x)
{
    return (int)std::nearbyint(x);
}
EMULATED int __float2int_rz(float x)
{
    return (int)x;
}
EMULATED float __int2float_rn(int x)
{
    return (float)x;
}

/* Less exact on a GPU. The C library has some of these names for itself. */
#define __expf(x)    std::exp((float)(x))
#define __logf(x)    std::log((float)(x))
#define __log2f(x)   std::log2((float)(x))
#define __powf(x, y) std::pow((float)(x), (float)(y))
#define __sinf(x)    std::sin((float)(x))
#define __cosf(x)    std::cos((float)(x))
#define __tanf(x)    std::tan((float)(x))

/* ---- loads and stores with a hint ---- */

#define EMULATED_LOAD(name)                                                                                            \
    template <typename T> static inline T name(const T *at)                                                            \
    {                                                                                                                  \
        return *at;                                                                                                    \
    }
EMULATED_LOAD(__ldg)
EMULATED_LOAD(__ldcs)
EMULATED_LOAD(__ldcg)
EMULATED_LOAD(__ldca)
EMULATED_LOAD(__ldlu)
EMULATED_LOAD(__ldcv)
#define EMULATED_STORE(name)                                                                                           \
    template <typename T> static inline void name(T *at, typename emulator_same<T>::type value)                        \
    {                                                                                                                  \
        *at = value;                                                                                                   \
    }
EMULATED_STORE(__stcs)
EMULATED_STORE(__stcg)
EMULATED_STORE(__stwb)
EMULATED_STORE(__stwt)

/* ---- making a table of the kernels of a source (kernels.py) ---- */

template <auto function> struct emulated;
template <typename... P, void (*function)(P...)> struct emulated<function> {
    static constexpr size_t sizes[] = { sizeof(P)..., 0 };
    static constexpr int params = sizeof...(P);
    template <size_t... i> static void call_with(void **params, std::index_sequence<i...>)
    {
        function(*static_cast<typename std::remove_cv<P>::type *>(params[i])...);
    }
    static void call(void **params) { call_with(params, std::index_sequence_for<P...>()); }
    static constexpr emulator_kernel kernel(const char *name, int most_threads, char *shared, char *shared_last,
                                            char *shared_kept)
    {
        return { name, call, sizes, params, most_threads, shared, shared_last, shared_kept };
    }
};
/* The linker's names for the memory of this library that is 0 at first. AddressSanitizer has its own things there. */
extern "C" __attribute__((visibility("hidden"))) char __bss_start[], _end[];
#ifdef __SANITIZE_ADDRESS__
#define EMULATED_SHARED_LAST __bss_start
#else
#define EMULATED_SHARED_LAST _end
#endif
#define EMULATED_KERNEL(name, most_threads)                                                                            \
    emulated<&name>::kernel(#name, (int)(most_threads), __bss_start, EMULATED_SHARED_LAST, _end)
/* At file scope: a constant of the device that programs look up by its name. */
#define EMULATED_GLOBAL(name)                                                                                          \
    static void __attribute__((constructor)) emulated_global_##name()                                                  \
    {                                                                                                                  \
        emulator_global(#name, &name, sizeof name);                                                                    \
    }

#endif
