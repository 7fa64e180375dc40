/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/softmax.h"
#include <math.h>

double gy_logit(const gantry_arg *logits, int64_t row, int64_t column)
{
    int64_t i = row * gy_arg_width(logits) + column;
    return logits->dtype == GANTRY_F32 ? (double)((const float *)logits->data)[i] : ((const double *)logits->data)[i];
}

gy_softmax gy_softmax_of(const gantry_arg *logits, int64_t row)
{
    gy_softmax s = { -INFINITY, 0 };
    int64_t width = gy_arg_width(logits);
    for (int64_t c = 0; c < width; c++)
        s.largest = fmax(s.largest, gy_logit(logits, row, c));
    for (int64_t c = 0; c < width; c++)
        s.sum += exp(gy_logit(logits, row, c) - s.largest);
    return s;
}

gantry_status gy_check_logits(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[1], *labels = &l->arg[2];
    if (x->rank == 2 && x->rows == gy_arg_size(labels))
        return GANTRY_OK;
    return gy_check_fail(
        text, size,
        "\"logits\" has %lld rows and \"labels\" %lld elements; logits must be a matrix with one label a row",
        (long long)x->rows, (long long)gy_arg_size(labels));
}
