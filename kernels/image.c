/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/image.h"

gy_image gy_image_of(const gantry_arg *a)
{
    gy_image m = { .frames = 1, .channels = 1 };
    if (a->rank == 2) {
        m.height = a->shape[0];
        m.width = a->shape[1];
        m.first = a->first_row;
        m.rows = a->rows;
    } else {
        m.frames = a->rows;
        m.height = m.rows = a->shape[1];
        m.width = a->shape[2];
        m.channels = a->rank == 4 ? a->shape[3] : 1;
    }
    m.row_elements = m.width * m.channels;
    return m;
}

static int same_shape(const gantry_arg *x, const gantry_arg *y)
{
    for (int32_t i = 0; i < x->rank && x->rank == y->rank; i++)
        if (x->shape[i] != y->shape[i])
            return 0;
    return x->rank == y->rank;
}

gantry_status gy_check_image(const gantry_launch *l, int in, int out, int64_t halo, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[in], *y = &l->arg[out];
    if (x->rank < 2 || x->rank > 4 || x->tile[0] >= 0 || !same_shape(x, y))
        return gy_check_fail(text, size,
                             "\"%s\" and \"%s\" must have the same shape: [height, width], [frames, height, width] or "
                             "[frames, height, width, channels]",
                             x->name, y->name);
    if (x->rank > 2) {
        if (x->first_row == y->first_row && x->rows == y->rows)
            return GANTRY_OK;
        return gy_check_fail(text, size,
                             "\"%s\" has frames %lld to %lld and \"%s\" %lld to %lld; they must be the same", x->name,
                             (long long)x->first_row, (long long)(x->first_row + x->rows), y->name,
                             (long long)y->first_row, (long long)(y->first_row + y->rows));
    }
    int64_t first = y->first_row > halo ? y->first_row - halo : 0, last = y->first_row + y->rows + halo;
    last = last < y->shape[0] ? last : y->shape[0];
    if (y->rows == 0 || (x->first_row <= first && x->first_row + x->rows >= last))
        return GANTRY_OK;
    return gy_check_fail(text, size,
                         "\"%s\" has rows %lld to %lld and \"%s\" needs %lld to %lld; add a halo: %s[i]~%lld", x->name,
                         (long long)x->first_row, (long long)(x->first_row + x->rows), y->name, (long long)first,
                         (long long)last, x->name, (long long)halo);
}

gantry_status gy_check_filter(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *w = &l->arg[0];
    if (w->rank != 2 || w->tile[0] >= 0)
        return gy_check_fail(text, size, "\"weights\" has %d axes; it must be [height, width]", (int)w->rank);
    if (w->rows % 2 == 0 || w->shape[1] % 2 == 0) {
        return gy_check_fail(text, size,
                             "\"weights\" is [%lld, %lld]; both must be odd, so that one weight is in the middle",
                             (long long)w->rows, (long long)w->shape[1]);
    }
    return gy_check_image(l, 1, 2, w->rows / 2, text, size);
}
