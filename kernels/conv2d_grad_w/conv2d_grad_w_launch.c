/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/plain.h"
#include "kernels/conv2d_grad_w/conv2d_grad_w.h"

enum { SIDE = 64, LOW = 16, DEPTH = 16, LINE = 32 };  /* as conv2d.cuh has them */
enum { LEAST_TERMS = 16 * DEPTH, MOST_BLOCKS = 512 }; /* of a piece; four or less for each multiprocessor */
enum { X = GY_CONV_PAD + 1, DY, DW };
enum { PRODUCT, LOW_PRODUCT, SUM }; /* variants */

gy_conv_cut gy_conv_cut_of(const gy_conv *c)
{
    int64_t columns = (int64_t)c->channels * c->window_height * c->window_width;
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

/* Without terms there is nothing to add. */
gantry_status gy_plain_conv2d_grad_w_launch(const gantry_launch *l)
{
    gy_conv c = shape_of(l);
    gy_conv_cut cut = gy_conv_cut_of(&c);
    gantry_dtype dtype = l->arg[DW].dtype;
    uint32_t across = (uint32_t)cut.across;
    int32_t each = (int32_t)cut.each, elements = (int32_t)cut.elements, pieces = (int32_t)cut.pieces;
    const void *x = l->arg[X].data, *dy = l->arg[DY].data;
    void *dw = l->arg[DW].data, *sums = pieces > 1 ? l->scratch : NULL;
    gy_grid grid = { (unsigned)cut.tiles, (unsigned)pieces, 1, GY_IMAGE_THREADS, 1, 1 };
    gy_grid lines = { (unsigned)gy_tiles(elements, LINE), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    gantry_status status = gy_cuda_image_launch(l, cut.is_low ? LOW_PRODUCT : PRODUCT, dtype, grid,
                                                (void *[]){ &c, &across, &each, &x, &dy, &dw, &sums });
    if (status || pieces == 1)
        return status;
    return gy_cuda_image_launch(l, SUM, dtype, lines, (void *[]){ &elements, &pieces, &sums, &dw });
}

static gantry_status prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    gy_conv c = shape_of(l);
    gy_conv_cut cut = gy_conv_cut_of(&c);
    uint64_t wide = l->arg[DW].dtype == GANTRY_F64 ? sizeof(double) : sizeof(float);
    uint64_t bytes = cut.pieces > 1 ? (uint64_t)(cut.pieces * cut.elements) * wide : 0;
    *scratch = bytes > *scratch ? bytes : *scratch;
    return gy_cuda_image_prepare(l, scratch, err);
}

const gy_cuda_image gy_plain_conv2d_grad_w_image = { gy_fatbin_conv2d_grad_w, GY_FLOAT_DTYPES, { "", "_low", "_sum" } };
const gy_cuda_kernel gy_plain_conv2d_grad_w = { .name = "conv2d_grad_w",
                                                .launch = gy_plain_conv2d_grad_w_launch,
                                                .open = gy_cuda_image_open,
                                                .close = gy_cuda_image_close,
                                                .data = &gy_plain_conv2d_grad_w_image,
                                                .early = gy_cuda_image_early,
                                                .prepare = prepare,
                                                .why = gy_cuda_image_why };
