/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient by few weights in f32, on tensor cores (from 8.0 on), floats split in two (mma_f32.cuh). A block has all elements of the window over
 * all channels of x, of SIDE channels of y, and goes over units: up to PIXELS pixels of y that follow each other in a row of an image.
 * Of each unit the pixels of y and the rows of x that windows on them cover are in shared memory; the matrix of patches is not made, an
 * element of it is a pixel of x so far from where the window begins. Of eight warps four have 16 channels of y each, twice, for every
 * other eight elements of the window.
 */
#ifndef GY_KERNELS_CONV2D_GRAD_W_PIXELS_CUH
#define GY_KERNELS_CONV2D_GRAD_W_PIXELS_CUH

#include "kernels/mma_f32.cuh"
#include "kernels/conv2d/conv2d.cuh"

enum { GY_PIXELS_SIDE = 64, GY_PIXELS = 64, GY_PIXELS_COLUMNS = 192, GY_PIXELS_ROOM = 6912 };

struct gy_pixels_room {
    float dy[GY_PIXELS_SIDE][GY_PIXELS + 4];
    float x[GY_PIXELS_ROOM];
};

struct gy_pixels {
    enum { CHUNK = 32, STEPS = CHUNK / 8, TILES = GY_PIXELS_COLUMNS / 16, TOGETHER = 2 };
    const gy_conv &c;
    gy_pixels_room &room;
    const float *x, *dy;
    int32_t result, columns, line; /* the first channel of y; elements of the window; pixels of a row of x that are in shared memory */
    int32_t image, row, column;    /* of the unit's first pixel */
    int at[TILES];                 /* where the window's elements g of the warp's tiles are in room.x, for the first pixel */
    float sum[TILES][4];

    __device__ int tile(int i) const { return 2 * i + threadIdx.x / 128; }

    /* Where element j of the window is in room.x, for the unit's first pixel. */
    __device__ int place_of(int j) const
    {
        const int window = c.window_height * c.window_width, in = j % window;
        return j < columns ? (j / window * c.window_height + in / c.window_width) * line + in % c.window_width : 0;
    }

    __device__ gy_pixels(const gy_conv &of, gy_pixels_room &in, const float *from, const float *of_y)
        : c(of), room(in), x(from), dy(of_y), result((int32_t)blockIdx.x * GY_PIXELS_SIDE),
          columns(of.channels * of.window_height * of.window_width), line((GY_PIXELS - 1) * of.stride + of.window_width)
    {
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            at[i] = place_of(8 * tile(i) + threadIdx.x % 32 / 4);
            for (int k = 0; k < 4; k++)
                sum[i][k] = 0;
        }
    }

    __device__ void load(int32_t unit)
    {
        const int32_t across = (c.wide + GY_PIXELS - 1) / GY_PIXELS;
        column = unit % across * GY_PIXELS;
        row = unit / across % c.high;
        image = unit / across / c.high;
        for (int i = threadIdx.x; i < GY_PIXELS_SIDE * GY_PIXELS; i += GY_CONV_THREADS) {
            const int32_t r = result + i / GY_PIXELS, k = column + i % GY_PIXELS;
            const bool there = r < c.results && k < c.wide;
            room.dy[i / GY_PIXELS][i % GY_PIXELS] = there ? dy[((image * c.results + r) * c.high + row) * c.wide + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < c.channels * c.window_height * line; i += GY_CONV_THREADS) {
            const int32_t of = i / line, channel = of / c.window_height, r = row * c.stride + of % c.window_height - c.pad;
            room.x[i] = gy_conv_pixel<float>(c, x, image, channel, r, column * c.stride + i % line - c.pad);
        }
    }

    /* Adds what CHUNK pixels from `first` on have to add. */
#ifdef GY_MMA
    __device__ void add(int first)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, r = threadIdx.x / 32 % 4 * 16 + g;
        gy_mma_split<4> a[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[s].set(i, room.dy[r + i % 2 * 8][first + 8 * s + t + i / 2 * 4]);
        const float *from = room.x + (first + t) * c.stride;
#pragma unroll
        for (int i = 0; i < TILES; i += TOGETHER) {
            if (8 * tile(i) >= columns)
                break;
            float big[TOGETHER][4] = { { 0 } }, small[TOGETHER][4] = { { 0 } };
#pragma unroll
            for (int s = 0; s < STEPS; s++)
#pragma unroll
                for (int p = 0; p < TOGETHER; p++) {
                    gy_mma_split<2> b;
                    b.set(0, from[at[i + p] + 8 * s * c.stride]);
                    b.set(1, from[at[i + p] + (8 * s + 4) * c.stride]);
                    gy_mma_add_split(big[p], small[p], a[s], b);
                }
#pragma unroll
            for (int p = 0; p < TOGETHER; p++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum[i + p][k] += big[p][k] + small[p][k];
        }
    }
#else
    __device__ void add(int first)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, r = threadIdx.x / 32 % 4 * 16 + g;
#pragma unroll 1
        for (int i = 0; i < TILES; i++)
#pragma unroll 1
            for (int k = 0; k < 4; k++) {
                const float *from = room.x + place_of(8 * tile(i) + 2 * t + k % 2);
#pragma unroll 1
                for (int p = first; p < first + CHUNK; p++)
                    sum[i][k] += room.dy[r + k / 2 * 8][p] * from[p * c.stride];
            }
    }
#endif

    __device__ void go(int32_t first, int32_t end)
    {
        for (int32_t unit = first; unit < end; unit++) {
            __syncthreads();
            load(unit);
            __syncthreads();
            for (int k = 0; k < GY_PIXELS && column + k < c.wide; k += CHUNK)
                add(k);
        }
    }

    __device__ void store(float *to) const
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, r = result + threadIdx.x / 32 % 4 * 16 + g;
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int32_t own = r + k / 2 * 8, j = 8 * tile(i) + 2 * t + k % 2;
                if (own < c.results && j < columns)
                    to[own * columns + j] = sum[i][k];
            }
    }
};

/* The block's piece is units [each * piece, each * (piece + 1)), its sums a matrix. */
extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS, 2)
    conv2d_grad_w_pixels_f32(gy_conv c, int32_t each, const float *x, const float *dy, float *sums)
{
    gy_begin();
    __shared__ gy_pixels_room room;
    const int32_t units = c.images * c.high * ((c.wide + GY_PIXELS - 1) / GY_PIXELS), first = (int32_t)blockIdx.y * each;
    gy_pixels p(c, room, x, dy);
    p.go(first, units - first < each ? units : first + each);
    p.store(sums + (int32_t)blockIdx.y * c.results * p.columns);
}

#endif
