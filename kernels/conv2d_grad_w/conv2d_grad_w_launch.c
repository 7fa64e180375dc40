/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/plain.h"
#include "kernels/conv2d_grad_w/conv2d_grad_w.h"

enum { SIDE = 64, LOW = 16, DEPTH = 16, LINE = 32 };  /* as conv2d.cuh has them */
enum { LEAST_TERMS = 16 * DEPTH, MOST_BLOCKS = 512 }; /* of a piece; four or less for each multiprocessor */
enum { LEAST_UNITS = 4, MOST_PIECES = 264 };          /* the same of pixels; two for each multiprocessor */
enum { X = GY_CONV_PAD + 1, DY, DW };
enum { PRODUCT, LOW_PRODUCT, SUM, BY_PIXELS }; /* variants */

/* Few weights, and many pixels; their rows of x fit into shared memory. */
static bool is_by_pixels(const gy_conv *c, gantry_dtype dtype, int64_t units)
{
    int64_t rows = (int64_t)c->channels * c->window_height,
            line = (GY_PIXELS - 1) * (int64_t)c->stride + c->window_width;
    return dtype == GANTRY_F32 && c->results > LOW && rows * c->window_width <= GY_PIXELS_COLUMNS &&
           rows * line <= GY_PIXELS_ROOM && units >= LEAST_UNITS * MOST_PIECES;
}

static gy_conv_cut cut_pixels(const gy_conv *c, int64_t columns, int64_t units)
{
    gy_conv_cut cut = { .by_pixels = true, .across = 1, .tiles = gy_tiles(c->results, SIDE), .terms = units };
    int64_t pieces = MOST_PIECES / cut.tiles;
    cut.elements = c->results * columns;
    cut.each = gy_tiles(units, pieces > 1 ? pieces : 1);
    cut.pieces = gy_tiles(units, cut.each);
    return cut;
}

gy_conv_cut gy_conv_cut_of(const gy_conv *c, gantry_dtype dtype, bool splits)
{
    int64_t columns = (int64_t)c->channels * c->window_height * c->window_width;
    int64_t units = (int64_t)c->images * c->high * gy_tiles(c->wide, GY_PIXELS);
    if (splits && is_by_pixels(c, dtype, units))
        return cut_pixels(c, columns, units);
    gy_conv_cut cut = { .across = gy_tiles(columns, SIDE),
                        .elements = c->results * columns,
                        .terms = (int64_t)c->images * c->high * c->wide };
    cut.is_low = c->results <= LOW;
    cut.tiles = cut.across * gy_tiles(c->results, cut.is_low ? LOW : SIDE);
    int64_t pieces = cut.terms / LEAST_TERMS, most = cut.tiles ? MOST_BLOCKS / cut.tiles : 0;
    pieces = pieces < most ? pieces : most;
    cut.each = pieces > 1 ? gy_tiles(gy_tiles(cut.terms, pieces), DEPTH) * DEPTH : cut.terms;
    cut.pieces = pieces > 1 ? gy_tiles(cut.terms, cut.each) : 1;
    return cut;
}

static gy_conv shape_of(const gantry_launch *l)
{
    return gy_conv_of(l, X, DW, DY);
}

static gantry_status launch_sum(const gantry_launch *l, const gy_conv_cut *cut)
{
    int32_t elements = (int32_t)cut->elements, pieces = (int32_t)cut->pieces;
    const void *sums = l->scratch;
    void *dw = l->arg[DW].data;
    gy_grid lines = { (unsigned)gy_tiles(elements, LINE), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, SUM, l->arg[DW].dtype, lines, (void *[]){ &elements, &pieces, &sums, &dw });
}

static gantry_status launch_pixels(const gantry_launch *l, gy_conv *c, const gy_conv_cut *cut)
{
    int32_t each = (int32_t)cut->each;
    const void *x = l->arg[X].data, *dy = l->arg[DY].data;
    void *sums = l->scratch;
    gy_grid grid = { (unsigned)cut->tiles, (unsigned)cut->pieces, 1, GY_IMAGE_THREADS, 1, 1 };
    gantry_status status =
        gy_cuda_image_launch(l, BY_PIXELS, l->arg[DW].dtype, grid, (void *[]){ c, &each, &x, &dy, &sums });
    return status ? status : launch_sum(l, cut);
}

/* Without terms there is nothing to add. */
gantry_status gy_plain_conv2d_grad_w_launch(const gantry_launch *l)
{
    gantry_dtype dtype = l->arg[DW].dtype;
    gy_conv c = shape_of(l);
    gy_conv_cut cut = gy_conv_cut_of(&c, dtype, gy_cuda_image_splits(l->handle));
    if (cut.by_pixels)
        return launch_pixels(l, &c, &cut);
    uint32_t across = (uint32_t)cut.across;
    int32_t each = (int32_t)cut.each;
    const void *x = l->arg[X].data, *dy = l->arg[DY].data;
    void *dw = l->arg[DW].data, *sums = cut.pieces > 1 ? l->scratch : NULL;
    gy_grid grid = { (unsigned)cut.tiles, (unsigned)cut.pieces, 1, GY_IMAGE_THREADS, 1, 1 };
    gantry_status status = gy_cuda_image_launch(l, cut.is_low ? LOW_PRODUCT : PRODUCT, dtype, grid,
                                                (void *[]){ &c, &across, &each, &x, &dy, &dw, &sums });
    return status || cut.pieces == 1 ? status : launch_sum(l, &cut);
}

static gantry_status prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gy_conv c = shape_of(l);
    gy_conv_cut cut = gy_conv_cut_of(&c, l->arg[DW].dtype, gy_cuda_image_splits(l->handle));
    uint64_t wide = l->arg[DW].dtype == GANTRY_F64 ? sizeof(double) : sizeof(float);
    uint64_t bytes = cut.pieces > 1 || cut.by_pixels ? (uint64_t)(cut.pieces * cut.elements) * wide : 0;
    *scratch = bytes > *scratch ? bytes : *scratch;
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_conv2d_grad_w_image = { .code = gy_fatbin_conv2d_grad_w,
                                                     .dtypes = GY_FLOAT_DTYPES,
                                                     .variant = { "", "_low", "_sum", "_pixels" },
                                                     .only = { [BY_PIXELS] = 1u << GANTRY_F32 } };
const gy_cuda_kernel gy_plain_conv2d_grad_w = { .name = "conv2d_grad_w",
                                                .launch = gy_plain_conv2d_grad_w_launch,
                                                .open = gy_cuda_image_open,
                                                .close = gy_cuda_image_close,
                                                .data = &gy_plain_conv2d_grad_w_image,
                                                .early = gy_cuda_image_early,
                                                .prepare = prepare,
                                                .why = gy_cuda_image_why };
