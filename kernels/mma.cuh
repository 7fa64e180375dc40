/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of 16 x 16 by 16 x 8 elements of f16 or bf16 that a warp makes on tensor cores, added up in f32: mma.m16n8k16 of the PTX ISA,
 * whose section "Matrix Fragments for mma.m16n8k16" says which lane has what. With g = lane / 4 and t = lane % 4 each register has two
 * elements, of neighbouring columns of the left operand, rows of the right one:
 *
 *   left    a[0], a[1]: rows g and g + 8, columns 2 t and 2 t + 1;  a[2], a[3]: the same rows, columns 8 further
 *   right   b[0]: rows 2 t and 2 t + 1, column g;  b[1]: 8 rows further
 *   sum     c[0], c[1]: row g, columns 2 t and 2 t + 1;  c[2], c[3]: row g + 8
 *
 * So two neighbouring sums, rounded, are a left operand of the next product without an exchange between lanes.
 *
 * And products of 16 x 8 by 8 x 8 elements of TF32, which are floats whose last 13 bits do not count, mma.m16n8k8:
 *
 *   left    a[0], a[1]: rows g and g + 8, column t;  a[2], a[3]: the same rows, 4 columns further
 *   right   b[0]: row t, column g;  b[1]: 4 rows further
 *   sum     as above
 *
 * GY_MMA: there are such functions, from 8.0 on. tests/support/cuda_emulator/mma.h has them for the CPU.
 */
#ifndef GY_KERNELS_MMA_CUH
#define GY_KERNELS_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

#if defined(CUDA_EMULATOR_H) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
#define GY_MMA 1

#ifdef CUDA_EMULATOR_H
template <typename T> static __device__ inline void gy_mma_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    emulator_mma<T>(c, a, b0, b1);
}
static __device__ inline void gy_mma_add_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    emulator_mma_tf32(c, a, b);
}
static __device__ inline void gy_load_matrices(uint32_t (&to)[4], const uint16_t *row) { emulator_load_matrices(to, row, false); }
static __device__ inline void gy_load_matrices_turned(uint32_t (&to)[4], const uint16_t *row)
{
    emulator_load_matrices(to, row, true);
}
static __device__ inline void gy_copy_16(void *to, const void *from, bool there) { emulator_copy_16(to, from, there); }
static __device__ inline void gy_copies_end_group() {}
template <int UNENDED> static __device__ inline void gy_copies_wait() {}
static __device__ inline float gy_exp2(float x) { return exp2f(x); }
#else
#define GY_MMA_ADD(type, name)                                                                                         \
    template <> __device__ inline void gy_mma_add<type>(float(&c)[4], const uint32_t(&a)[4], uint32_t b0, uint32_t b1) \
    {                                                                                                                  \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "  \
                     "{%8, %9}, {%0, %1, %2, %3};"                                                                     \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                  \
    }
template <typename T> static __device__ void gy_mma_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
GY_MMA_ADD(__half, "f16")
GY_MMA_ADD(__nv_bfloat16, "bf16")
static __device__ inline void gy_mma_add_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline uint32_t gy_shared_address(const void *at) { return (uint32_t)__cvta_generic_to_shared(at); }

/* Four matrices of 8 x 8 elements in shared memory; lane l says where row l % 8 of matrix l / 8 begins, at a multiple of 16 bytes.
 * to[i] is, of matrix i, row g, columns 2 t and 2 t + 1; turned: rows 2 t and 2 t + 1, column g. */
static __device__ inline void gy_load_matrices(uint32_t (&to)[4], const uint16_t *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(gy_shared_address(row))
                 : "memory");
}
static __device__ inline void gy_load_matrices_turned(uint32_t (&to)[4], const uint16_t *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(gy_shared_address(row))
                 : "memory");
}

/* 16 bytes to shared memory, zeros where they are not there. They are there once their group has been waited for, by the thread that
 * asked for them. */
static __device__ inline void gy_copy_16(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(gy_shared_address(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
static __device__ inline void gy_copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int UNENDED> static __device__ inline void gy_copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(UNENDED) : "memory"); }

static __device__ inline float gy_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif

template <typename T> static __device__ uint32_t gy_pair(float low, float high);
template <> __device__ inline uint32_t gy_pair<__half>(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}
template <> __device__ inline uint32_t gy_pair<__nv_bfloat16>(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

/* The first of two neighbours. */
template <typename T> static __device__ inline float gy_float_of(uint32_t pair)
{
    const uint16_t bits = (uint16_t)pair;
    T x;
    memcpy((void *)&x, &bits, sizeof bits);
    return (float)x;
}
#endif
#endif
