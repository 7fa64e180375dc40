/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by a warp (kernels/mma.cuh), written from the tables of the PTX ISA: lanes put what they have
 * into a box of their warp, and take what the tables say. */
#ifndef CUDA_EMULATOR_MMA_H
#define CUDA_EMULATOR_MMA_H

#include "device.h"

struct emulator_box {
    uint32_t a[4], b[2];
    const uint16_t *row;
};
/* Of each warp of a block. */
static emulator_box emulator_boxes[32][32];

static inline emulator_box *emulator_warp_boxes()
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return emulator_boxes[thread / 32];
}

template <typename T> static inline float emulator_half_of(uint32_t pair, int which)
{
    uint16_t bits = (uint16_t)(pair >> 16 * which);
    T value;
    std::memcpy(static_cast<void *>(&value), &bits, sizeof value);
    return (float)value;
}

/* c += a b; a is 16 x 16, b 16 x 8. */
template <typename T>
static inline void emulator_mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, EMULATED_LINE)
{
    emulator_box *boxes = emulator_warp_boxes(), *own = &boxes[emulator_lane()];
    std::memcpy(own->a, a, sizeof own->a);
    own->b[0] = b0;
    own->b[1] = b1;
    __syncwarp(~0u, line);
    for (int i = 0; i < 4; i++) {
        int row = emulator_lane() / 4 + i / 2 * 8, column = emulator_lane() % 4 * 2 + i % 2;
        double sum = 0;
        for (int k = 0; k < 16; k++) {
            const emulator_box &left = boxes[row % 8 * 4 + k % 8 / 2], &right = boxes[column * 4 + k % 8 / 2];
            sum += (double)emulator_half_of<T>(left.a[row / 8 + k / 8 * 2], k % 2) *
                   (double)emulator_half_of<T>(right.b[k / 8], k % 2);
        }
        c[i] = (float)(sum + (double)c[i]);
    }
    __syncwarp(~0u, line);
}

/* The last 13 bits of an element do not count. */
static inline double emulator_tf32(uint32_t bits)
{
    float value;
    bits &= ~0x1fffu;
    std::memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* c += a b; a is 16 x 8, b 8 x 8. */
static inline void emulator_mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], EMULATED_LINE)
{
    emulator_box *boxes = emulator_warp_boxes(), *own = &boxes[emulator_lane()];
    std::memcpy(own->a, a, sizeof own->a);
    std::memcpy(own->b, b, sizeof own->b);
    __syncwarp(~0u, line);
    for (int i = 0; i < 4; i++) {
        int row = emulator_lane() / 4 + i / 2 * 8, column = emulator_lane() % 4 * 2 + i % 2;
        double sum = 0;
        for (int k = 0; k < 8; k++) {
            const emulator_box &left = boxes[row % 8 * 4 + k % 4], &right = boxes[column * 4 + k % 4];
            sum += emulator_tf32(left.a[row / 8 + k / 4 * 2]) * emulator_tf32(right.b[k / 4]);
        }
        c[i] = (float)(sum + (double)c[i]);
    }
    __syncwarp(~0u, line);
}

/* Rows at multiples of 16 bytes. */
static inline void emulator_load_matrices(uint32_t (&to)[4], const uint16_t *row, bool turned, EMULATED_LINE)
{
    emulator_box *boxes = emulator_warp_boxes();
    int g = emulator_lane() / 4, t = emulator_lane() % 4;
    if ((uintptr_t)row % 16)
        emulator_trap(line);
    boxes[emulator_lane()].row = row;
    __syncwarp(~0u, line);
    for (int i = 0; i < 4; i++) {
        uint32_t low = turned ? boxes[8 * i + 2 * t].row[g] : boxes[8 * i + g].row[2 * t];
        uint32_t high = turned ? boxes[8 * i + 2 * t + 1].row[g] : boxes[8 * i + g].row[2 * t + 1];
        to[i] = low | high << 16;
    }
    __syncwarp(~0u, line);
}

/* At once, which is one of the times when a copy that is not waited for may come. */
static inline void emulator_copy_16(void *to, const void *from, bool there, EMULATED_LINE)
{
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16)
        emulator_trap(line);
    std::memset(to, 0, 16);
    if (there)
        std::memcpy(to, from, 16);
}

#endif
