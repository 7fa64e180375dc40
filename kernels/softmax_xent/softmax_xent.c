/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/softmax.h"
#include <math.h>

enum { BLOCK = 8192 }; /* rows whose losses the scratch holds */

typedef struct losses {
    int64_t first; /* row of the block */
    double *of;
    gy_least_row wrong;
} losses;

static gantry_status find_losses(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    losses *x = data;
    const gantry_arg *logits = &l->arg[1];
    const int32_t *label = l->arg[2].data;
    for (int64_t i = first; i < last; i++) {
        int64_t r = x->first + i;
        if (label[r] < 0 || label[r] >= gy_arg_width(logits)) {
            gy_least_row_note(&x->wrong, r);
            continue;
        }
        gy_softmax s = gy_softmax_of(logits, r);
        gy_packs right;
        gy_packs_load(&right, 1, logits, r * gy_arg_width(logits) + label[r], logits->rows * gy_arg_width(logits));
        x->of[i] = log(s.sum) + s.largest - right.at[0];
    }
    return GANTRY_OK;
}

/* Rows are added up in their order, whatever threads they are of. */
static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *logits = &l->arg[1];
    losses x = { .of = l->scratch, .wrong = INT64_MAX };
    double total = 0;
    for (; x.first < logits->rows; x.first += BLOCK) {
        int64_t count = logits->rows - x.first < BLOCK ? logits->rows - x.first : BLOCK;
        gantry_launch_cut(l, count, gy_grain_of_rows(8 * gy_arg_width(logits)), find_losses, &x);
        int64_t wrong = atomic_load(&x.wrong);
        if (wrong != INT64_MAX) {
            int32_t label = ((const int32_t *)l->arg[2].data)[wrong];
            *l->status = label < 0 ? label : label + 1;
            return GANTRY_OK;
        }
        for (int64_t i = 0; i < count; i++)
            total += x.of[i];
    }
    if (l->arg[3].dtype == GANTRY_F32)
        *(float *)l->arg[3].data += (float)(l->arg[0].number * total);
    else
        *(double *)l->arg[3].data += l->arg[0].number * total;
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_dtype logits = l->arg[1].dtype, loss = l->arg[3].dtype, wanted = logits == GANTRY_F64 ? logits : GANTRY_F32;
    gantry_status status = gy_check_logits(l, text, size);
    if (!status && loss != wanted)
        return gy_check_fail(text, size, "\"logits\" is %s and \"loss\" is %s; loss must be %s",
                             gantry_dtype_name(logits), gantry_dtype_name(loss), gantry_dtype_name(wanted));
    return status ? status : gy_check_one_element(l, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "factor of the loss, such as 1 / batch"),
    GY_REGION("logits", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "[rows, classes]"), /* computed in, and its letter says so */
    GY_REGION("labels", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_I32), 0, "the right class of each row"),
    GY_REGION("loss", GANTRY_SUM, GY_WIDE_DTYPES, 0, "one element: f64 of f64, else f32"),
};

const gantry_kernel gy_kernel_softmax_xent = {
    .struct_size = sizeof(gantry_kernel),
    .name = "softmax_xent",
    .summary =
        "loss += scale * sum of -log softmax(logits)[label]; status: a label that is no class, as label + 1 from 0 on",
    GANTRY_KERNEL_ARGS(args),
    .flops = "10 * logits.size",
    .bytes = "logits.bytes + labels.bytes",
    .scratch = "8 * min(8192, logits.rows)", /* losses of rows; sums of parts on a GPU */
    .host = run,
    .check = check
};
