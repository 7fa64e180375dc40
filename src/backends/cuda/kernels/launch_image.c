/* SPDX-License-Identifier: Apache-2.0 */
/* Image filters, and what is counted of an image. */
#include "backends/cuda/kernels/image.h"

#include "kernels/frames.h"
#include "kernels/gaussian.h"

enum { COLUMNS = 256, SOBEL_ROWS = 16, BLUR_ROWS = 8, NEAR = 64 }; /* of sobel.cu and gaussian_blur.cu */

/* [height, width], of which rows may be missing, or whole [frames, height, width] or [frames, height, width, channels];
 * *blocks is how many tiles there are. */
static gy_frames frames_of(const gantry_arg *in, const gantry_arg *out, int64_t tile_rows, unsigned *blocks)
{
    int64_t frames = in->rank == 2 ? 1 : out->rows;
    gy_frames f = { .channels = in->rank == 4 ? (int32_t)in->shape[3] : 1 };
    if (in->rank == 2) {
        f.height = in->shape[0];
        f.row_elements = in->shape[1];
        f.in_first = in->first_row;
        f.in_rows = in->rows;
        f.out_first = out->first_row;
        f.out_rows = out->rows;
    } else {
        f.height = f.in_rows = f.out_rows = in->shape[1];
        f.row_elements = in->shape[2] * f.channels;
    }
    f.across = (uint32_t)((f.row_elements + COLUMNS - 1) / COLUMNS);
    f.down = (uint32_t)((f.out_rows + tile_rows - 1) / tile_rows);
    *blocks = (unsigned)(frames * f.across * f.down);
    return f;
}

#define IMAGE_DTYPES (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F32))

static gantry_status launch_sobel(const gantry_launch *l)
{
    const void *in = l->arg[0].data;
    void *out = l->arg[1].data;
    unsigned blocks;
    gy_frames f = frames_of(&l->arg[0], &l->arg[1], SOBEL_ROWS, &blocks);
    return gy_cuda_image_launch(l, 0, l->arg[0].dtype, (gy_grid){ blocks, 1, 1, COLUMNS, 1, 1 },
                                (void *[]){ &in, &out, &f });
}

static const gy_cuda_image image_sobel = { gy_fatbin_sobel, IMAGE_DTYPES, { "" } };
const gy_cuda_kernel gy_cuda_kernel_sobel = { .name = "sobel",
                                              .launch = launch_sobel,
                                              .open = gy_cuda_image_open,
                                              .close = gy_cuda_image_close,
                                              .data = &image_sobel };

static gantry_status launch_gaussian_blur(const gantry_launch *l)
{
    const void *in = l->arg[1].data;
    void *out = l->arg[2].data;
    unsigned blocks;
    gy_frames f = frames_of(&l->arg[1], &l->arg[2], BLUR_ROWS, &blocks);
    gy_gaussian g = gy_gaussian_of(l->arg[0].number);
    return gy_cuda_image_launch(l, (int64_t)g.radius * f.channels > NEAR, l->arg[1].dtype,
                                (gy_grid){ blocks, 1, 1, COLUMNS, 1, 1 }, (void *[]){ &in, &out, &f, &g });
}

static const gy_cuda_image image_gaussian_blur = { gy_fatbin_gaussian_blur, IMAGE_DTYPES, { "", "_far" } };
const gy_cuda_kernel gy_cuda_kernel_gaussian_blur = { .name = "gaussian_blur",
                                                      .launch = launch_gaussian_blur,
                                                      .open = gy_cuda_image_open,
                                                      .close = gy_cuda_image_close,
                                                      .data = &image_gaussian_blur };

/* A block counts so much before it adds up, or there would be more adding up than counting. */
static gantry_status launch_histogram(const gantry_launch *l)
{
    enum { THREADS = 512, BYTES_OF_BLOCK = 1 << 16, MOST_BLOCKS = 1024 }; /* threads of histogram.cu */
    const void *x = l->arg[0].data;
    void *out = l->arg[1].data;
    int64_t n = gy_arg_size(&l->arg[0]), blocks = (n + BYTES_OF_BLOCK - 1) / BYTES_OF_BLOCK;
    gantry_dtype dtype = gantry_dtype_size(l->arg[1].dtype) == 4 ? GANTRY_U32 : GANTRY_U64;
    gy_grid grid = { (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1, THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, dtype, grid, (void *[]){ &x, &out, &n });
}

static const gy_cuda_image image_histogram = { gy_fatbin_histogram,
                                               GANTRY_DTYPE_BIT(GANTRY_U32) | GANTRY_DTYPE_BIT(GANTRY_U64),
                                               { "" } };
const gy_cuda_kernel gy_cuda_kernel_histogram = { .name = "histogram",
                                                  .launch = launch_histogram,
                                                  .open = gy_cuda_image_open,
                                                  .close = gy_cuda_image_close,
                                                  .data = &image_histogram };
