/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/softmax.h"
#include <math.h>

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gantry_arg *logits = &l->arg[1];
    const int32_t *label = l->arg[2].data;
    int64_t width = gy_arg_width(logits);
    (void)data;
    for (int64_t r = first; r < last; r++) {
        gy_softmax s = gy_softmax_of(logits, r);
        for (int64_t c = 0; c < width; c += GY_SOFTMAX_AT_ONCE) {
            gy_packs v;
            int count = gy_packs_load(&v, GY_SOFTMAX_AT_ONCE, logits, r * width + c, (r + 1) * width);
            for (int k = 0; k < count; k++)
                v.at[k] = l->arg[0].number * (exp(v.at[k] - s.largest) / s.sum - (label[r] == c + k ? 1 : 0));
            gy_packs_store(&v, &l->arg[3], r * width + c, count);
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, l->arg[1].rows, gy_grain_of_rows(8 * gy_arg_width(&l->arg[1])), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_logits(l, text, size);
    return status ? status : gy_check_same_size(l, 1, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "that of softmax_xent"),
    GY_REGION("logits", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[rows, classes]"),
    GY_REGION("labels", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "the right class of each row"),
    GY_REGION("grad", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of the loss by the logits"),
};

const gantry_kernel gy_kernel_softmax_xent_grad = { .struct_size = sizeof(gantry_kernel),
                                                    .name = "softmax_xent_grad",
                                                    .summary = "grad = scale * (softmax(logits) - one_hot(labels))",
                                                    GANTRY_KERNEL_ARGS(args),
                                                    .flops = "10 * logits.size",
                                                    .bytes = "logits.bytes + labels.bytes + grad.bytes",
                                                    .host = run,
                                                    .check = check };
