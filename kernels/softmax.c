/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/softmax.h"
#include <math.h>

gy_softmax gy_softmax_of(const gantry_arg *logits, int64_t row)
{
    gy_softmax s = { -INFINITY, 0 };
    int64_t first = row * gy_arg_width(logits), end = first + gy_arg_width(logits);
    gy_packs v;
    for (int64_t i = first; i < end; i += GY_SOFTMAX_AT_ONCE) {
        int count = gy_packs_load(&v, GY_SOFTMAX_AT_ONCE, logits, i, end);
        for (int k = 0; k < count; k++)
            s.largest = fmax(s.largest, v.at[k]);
    }
    for (int64_t i = first; i < end; i += GY_SOFTMAX_AT_ONCE) {
        int count = gy_packs_load(&v, GY_SOFTMAX_AT_ONCE, logits, i, end);
        for (int k = 0; k < count; k++)
            s.sum += exp(v.at[k] - s.largest);
    }
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
