/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/image.h"

#include "kernels/box.h"
#include <stdio.h>
#include <string.h>

/* The axis of rows among those of an extent; columns are behind it, frames before. */
static int axis_of_rows(const gantry_arg *a)
{
    return a->rank == 4 ? 1 : 2;
}

gy_image gy_image_of(const gantry_arg *a)
{
    gy_extent e = gy_extent_of(a);
    int rows = axis_of_rows(a);
    gy_image m = { .frames = a->rank == 2 ? 1 : e.count[rows - 1],
                   .channels = a->rank == 4 ? e.count[3] : 1,
                   .height = e.whole[rows],
                   .width = e.whole[rows + 1],
                   .first = e.first[rows],
                   .rows = e.count[rows] };
    m.left = e.first[rows + 1] * m.channels;
    m.pitch = e.count[rows + 1] * m.channels;
    m.row_elements = m.width * m.channels;
    return m;
}

/* "~1", or "~0,1,2" with a halo for each axis: of frames none. */
static void name_halo(char *to, size_t size, const gantry_arg *x, int64_t down, int64_t across)
{
    int at = snprintf(to, size, "%s%s%s~", x->name, x->whole && x->rank > 2 ? "[f]" : "[i]",
                      !x->whole      ? ""
                      : x->rank == 2 ? "[j]"
                                     : "[i][j]");
    if (at < (int)size && (!x->whole || (x->rank == 2 && down == across)))
        snprintf(to + at, size - (size_t)at, "%lld", (long long)down);
    else if (at < (int)size)
        snprintf(to + at, size - (size_t)at, "%s%lld,%lld", x->rank > 2 ? "0," : "", (long long)down,
                 (long long)across);
}

/* Frames and channels are the same. */
static gantry_status check_same(const gantry_arg *x, const gantry_arg *y, const char *what, int axis, char *text,
                                size_t size)
{
    gy_extent in = gy_extent_of(x), out = gy_extent_of(y);
    if (in.first[axis] == out.first[axis] && in.count[axis] == out.count[axis])
        return GANTRY_OK;
    return gy_check_fail(text, size, "\"%s\" has %s %lld to %lld and \"%s\" %lld to %lld; they must be the same",
                         x->name, what, (long long)in.first[axis], (long long)(in.first[axis] + in.count[axis]),
                         y->name, (long long)out.first[axis], (long long)(out.first[axis] + out.count[axis]));
}

gantry_status gy_check_image(const gantry_launch *l, int in, int out, int64_t down, int64_t across, char *text,
                             size_t size)
{
    const gantry_arg *x = &l->arg[in], *y = &l->arg[out];
    gy_extent from = gy_extent_of(x), to = gy_extent_of(y);
    int rows = axis_of_rows(x);
    if (x->rank < 2 || x->rank > 4 || x->rank != y->rank || memcmp(from.whole, to.whole, sizeof from.whole) != 0)
        return gy_check_fail(text, size,
                             "\"%s\" and \"%s\" must have the same shape: [height, width], [frames, height, width] or "
                             "[frames, height, width, channels]",
                             x->name, y->name);
    gantry_status status = x->rank > 2 ? check_same(x, y, "frames", rows - 1, text, size) : GANTRY_OK;
    if (!status && x->rank == 4)
        status = check_same(x, y, "channels", 3, text, size);
    for (int k = rows; !status && k < rows + 2 && y->rows * y->row_bytes > 0; k++) {
        int64_t halo = k == rows ? down : across, last = to.first[k] + to.count[k];
        int64_t first = to.first[k] > halo ? to.first[k] - halo : 0;
        last = last < to.whole[k] - halo ? last + halo : to.whole[k];
        char named[96];
        name_halo(named, sizeof named, x, down, across);
        if (from.first[k] > first || from.first[k] + from.count[k] < last)
            status = gy_check_fail(
                text, size, "\"%s\" has %s %lld to %lld and \"%s\" needs %lld to %lld; add a halo: %s", x->name,
                k == rows ? "rows" : "columns", (long long)from.first[k], (long long)(from.first[k] + from.count[k]),
                y->name, (long long)first, (long long)last, named);
    }
    return status;
}

gantry_status gy_check_filter(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *w = &l->arg[0];
    if (w->rank != 2)
        return gy_check_fail(text, size, "\"weights\" has %d axes; it must be [height, width]", (int)w->rank);
    if (w->rows % 2 == 0 || w->shape[1] % 2 == 0) {
        return gy_check_fail(text, size,
                             "\"weights\" is [%lld, %lld]; both must be odd, so that one weight is in the middle",
                             (long long)w->rows, (long long)w->shape[1]);
    }
    return gy_check_image(l, 1, 2, w->rows / 2, w->shape[1] / 2, text, size);
}
