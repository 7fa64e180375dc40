/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/softmax.h"
#include <math.h>

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    const int32_t *label = l->arg[2].data;
    double total = 0;
    for (int64_t r = 0; r < logits->rows; r++) {
        if (label[r] < 0 || label[r] >= gy_arg_width(logits)) {
            *l->status = label[r] < 0 ? label[r] : label[r] + 1;
            return GANTRY_OK;
        }
        gy_softmax s = gy_softmax_of(logits, r);
        total += log(s.sum) + s.largest - gy_logit(logits, r, label[r]);
    }
    if (l->arg[3].dtype == GANTRY_F32)
        *(float *)l->arg[3].data += (float)(l->arg[0].number * total);
    else
        *(double *)l->arg[3].data += l->arg[0].number * total;
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_logits(l, text, size);
    return status ? status : gy_check_one_element(l, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "factor of the loss, such as 1 / batch"),
    GY_REGION("logits", GANTRY_READ, GY_WIDE_DTYPES, 'T', "[rows, classes]"),
    GY_REGION("labels", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "the right class of each row"),
    GY_REGION("loss", GANTRY_SUM, GY_WIDE_DTYPES, 'T', "one element"),
};

const gantry_kernel gy_kernel_softmax_xent = { .struct_size = sizeof(gantry_kernel),
                                               .name = "softmax_xent",
                                               .summary = "loss += scale * sum of -log softmax(logits)[label]",
                                               GANTRY_KERNEL_ARGS(args),
                                               .flops = "10 * logits.size",
                                               .bytes = "logits.bytes + labels.bytes",
                                               .scratch = "8 * min(8192, logits.rows)", /* sums of parts, on a GPU */
                                               .host = run,
                                               .check = check };
