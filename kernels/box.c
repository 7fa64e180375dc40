/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/box.h"

#include "kernels/manifest.h"
#include <string.h>

gy_grid_boxes gy_grid_boxes_of(const gantry_arg *x, const gantry_arg *y)
{
    gy_extent from = gy_extent_of(x), to = gy_extent_of(y);
    gy_grid_boxes g = { .row = from.count[3], .plane = from.count[3] * from.count[2] };
    for (int k = 0; k < 3; k++) {
        g.first[k] = to.first[k + 1];
        g.count[k] = to.count[k + 1];
        g.whole[k] = to.whole[k + 1];
    }
    g.skip =
        (to.first[1] - from.first[1]) * g.plane + (to.first[2] - from.first[2]) * g.row + to.first[3] - from.first[3];
    return g;
}

gantry_status gy_check_around(const gantry_launch *l, int rank, int64_t more, char *text, size_t size)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    gy_extent x = gy_extent_of(in), y = gy_extent_of(out);
    if (in->rank != rank || out->rank != rank || memcmp(x.whole, y.whole, sizeof x.whole) != 0)
        return gy_check_fail(text, size,
                             rank == 2 ? "\"x\" and \"y\" must be two grids of the same shape"
                                       : "\"x\" and \"y\" must be two volumes of the same shape");
    if (out->rows * out->row_bytes == 0)
        return GANTRY_OK;
    for (int k = GY_BOX_AXES - rank; k < GY_BOX_AXES; k++) {
        int64_t first = y.first[k] > more ? y.first[k] - more : 0, last = y.first[k] + y.count[k];
        last = last < y.whole[k] - more ? last + more : y.whole[k];
        if (x.first[k] > first || x.first[k] + x.count[k] < last)
            return gy_check_fail(
                text, size, "\"x\" has %s %lld to %lld%s and \"y\" needs %lld to %lld; add a halo of one %s: x[i]%s~1",
                in->whole ? "elements" : "rows", (long long)x.first[k], (long long)(x.first[k] + x.count[k]),
                in->whole ? " along an axis" : "", (long long)first, (long long)last, in->whole ? "element" : "row",
                in->whole ? rank == 2 ? "[j]" : "[j][k]" : "");
    }
    return GANTRY_OK;
}

static int64_t offset_in(const gy_box *b, int64_t i, int64_t j, int64_t k)
{
    const int64_t *f = b->first, *s = b->shape;
    return (((f[0] + i) * s[1] + f[1] + j) * s[2] + f[2] + k) * s[3] + f[3];
}

typedef struct copying {
    const gy_box *into, *of;
    char *to;
    const char *from;
    size_t size;
} copying;

/* Elements [first, last) of the box, which may begin and end within a line. */
static gantry_status copy_elements(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const copying *c = data;
    const int64_t *count = c->of->count;
    (void)l;
    for (int64_t at = first, n; at < last; at += n) {
        int64_t line = at / count[3], within = at % count[3], left = count[3] - within;
        int64_t i = line / count[2] / count[1], j = line / count[2] % count[1], k = line % count[2];
        n = left < last - at ? left : last - at;
        memcpy(c->to + (size_t)(offset_in(c->into, i, j, k) + within) * c->size,
               c->from + (size_t)(offset_in(c->of, i, j, k) + within) * c->size, (size_t)n * c->size);
    }
    return GANTRY_OK;
}

gantry_status gy_box_copy(const gantry_launch *l, void *to, const gy_box *into, const void *from, const gy_box *of,
                          size_t size)
{
    copying c = { into, of, to, from, size };
    return gantry_launch_cut(l, gy_box_elements(of), GY_GRAIN, copy_elements, &c);
}

/* Axes behind which both boxes are whole, and the one before them, are one axis. */
static void fold(gy_box *a, gy_box *b)
{
    enum { LAST = GY_BOX_AXES - 1 };
    for (int n = 0; n < LAST && a->count[LAST] == a->shape[LAST] && b->count[LAST] == b->shape[LAST]; n++) {
        gy_box *both[] = { a, b };
        for (int i = 0; i < 2; i++) {
            gy_box *box = both[i];
            int64_t inner = box->shape[LAST];
            for (int k = LAST; k > 0; k--) {
                box->first[k] = box->first[k - 1] * (k == LAST ? inner : 1);
                box->count[k] = box->count[k - 1] * (k == LAST ? inner : 1);
                box->shape[k] = box->shape[k - 1] * (k == LAST ? inner : 1);
            }
            box->first[0] = 0;
            box->count[0] = box->shape[0] = 1;
        }
    }
}

bool gy_box_common(gy_box *of, gy_box *into, const gantry_arg *from, const gantry_arg *to)
{
    gy_extent x = gy_extent_of(from), y = gy_extent_of(to);
    for (int k = 0; k < GY_BOX_AXES; k++) {
        int64_t first = x.first[k] > y.first[k] ? x.first[k] : y.first[k];
        int64_t last_x = x.first[k] + x.count[k], last_y = y.first[k] + y.count[k];
        of->count[k] = into->count[k] = (last_x < last_y ? last_x : last_y) - first;
        of->first[k] = first - x.first[k];
        into->first[k] = first - y.first[k];
        of->shape[k] = x.count[k];
        into->shape[k] = y.count[k];
        if (of->count[k] <= 0)
            return false;
    }
    fold(of, into);
    return true;
}

bool gy_box_towards(gy_box *out, const int64_t shape[GY_BOX_AXES], int64_t side[2][GY_BOX_AXES],
                    int64_t inner[2][GY_BOX_AXES], int way)
{
    int beside = 0;
    for (int k = GY_BOX_AXES - 1; k >= 0; k--, way /= 3) {
        int digit = way % 3;
        int64_t own = shape[k] - inner[0][k] - inner[1][k];
        out->shape[k] = shape[k];
        out->count[k] = digit == 0 ? side[0][k] : digit == 2 ? side[1][k] : own;
        out->first[k] = digit == 0 ? 0 : digit == 2 ? shape[k] - side[1][k] : inner[0][k];
        beside += digit == 1;
    }
    return beside < GY_BOX_AXES && gy_box_elements(out) > 0;
}

static int boxes(gy_box box[GY_BOX_WAYS], const int64_t shape[GY_BOX_AXES], int64_t side[2][GY_BOX_AXES],
                 int64_t inner[2][GY_BOX_AXES])
{
    int count = 0;
    for (int way = 0; way < GY_BOX_WAYS; way++)
        count += gy_box_towards(&box[count], shape, side, inner, way);
    return count;
}

int gy_halo_given(gy_box box[GY_BOX_WAYS], const gantry_launch *launch)
{
    const gantry_arg *x = gantry_launch_arg(launch, 0);
    gy_extent w = gy_extent_of(x);
    int64_t side[2][GY_BOX_AXES] = { { 0 } }, none[2][GY_BOX_AXES] = { { 0 } };
    for (int k = GY_BOX_AXES - x->rank; k < GY_BOX_AXES; k++) {
        int axis = k - (GY_BOX_AXES - x->rank);
        int64_t before = gantry_launch_arg(launch, 1 + 2 * axis)->integer,
                after = gantry_launch_arg(launch, 2 + 2 * axis)->integer;
        side[0][k] = w.first[k] > 0 ? after : 0;
        side[1][k] = w.first[k] + w.count[k] < w.whole[k] ? before : 0;
    }
    return boxes(box, w.count, side, none);
}

int gy_halo_taken(gy_box box[GY_BOX_WAYS], const gantry_arg *y)
{
    gy_extent w = gy_extent_of(y);
    int64_t side[2][GY_BOX_AXES] = { { 0 } };
    for (int k = GY_BOX_AXES - y->rank; k < GY_BOX_AXES; k++) {
        side[0][k] = y->axis[k - (GY_BOX_AXES - y->rank)].before;
        side[1][k] = y->axis[k - (GY_BOX_AXES - y->rank)].after;
    }
    return boxes(box, w.count, side, side);
}
