/* SPDX-License-Identifier: Apache-2.0 */
/* The adjoint of filter2d's image, of that of its result: sums around each pixel by the weights turned around. */
#include "kernels/image.h"
#include "kernels/image_grad.h"

/* Items are rows of all frames. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gy_image from = gy_image_of(&l->arg[1]), to = gy_image_of(&l->arg[2]);
    gy_filter f = { .weight = l->arg[0].data,
                    .high = (int32_t)l->arg[0].rows,
                    .wide = (int32_t)l->arg[0].shape[1],
                    .channels = (int32_t)to.channels,
                    .height = to.height,
                    .width = to.width,
                    .pitch = from.pitch };
    for (int64_t i = first; i < last; i++) {
        int64_t row = to.first + i % to.rows, frame = i / to.rows;
        const float *image = (const float *)l->arg[1].data + gy_image_at(&from, frame, 0, 0);
        float *line = (float *)l->arg[2].data + i * to.pitch - to.left;
        for (int64_t e = to.left; e < to.left + to.pitch; e++)
            line[e] = gy_filter_grad(&f, image, row, e / to.channels, (int32_t)(e % to.channels));
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_image to = gy_image_of(&l->arg[2]);
    int64_t work = to.pitch * gy_arg_size(&l->arg[0]);
    return gantry_launch_cut(l, to.frames * to.rows, gy_grain_of_rows(work), piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("weights", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0, "[kh, kw], both odd; those of the filter"),
    GY_REGION("dout", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0,
              "adjoint of the filter's result: [h, w], [frames, h, w] or [frames, h, w, channels]"),
    GY_REGION("dimage", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_F32), 0, "adjoint of its image; the same shape"),
};

const gantry_kernel gy_kernel_filter2d_grad = { .struct_size = sizeof(gantry_kernel),
                                                .name = "filter2d_grad",
                                                .summary = "dimage = dout times the matrix of filter2d, transposed",
                                                GANTRY_KERNEL_ARGS(args),
                                                .flops = "2 * weights.size * dimage.size",
                                                .bytes = "weights.bytes + dout.bytes + dimage.bytes",
                                                .host = run,
                                                .check = gy_check_filter };
