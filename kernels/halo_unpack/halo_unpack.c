/* SPDX-License-Identifier: Apache-2.0 */
/* A tile and what its neighbours gave, as one box. */
#include "kernels/box.h"
#include "kernels/manifest.h"

/* The middle of y. */
static gy_box own_box(const gantry_arg *y)
{
    gy_extent w = gy_extent_of(y);
    gy_box own;
    for (int k = 0; k < GY_BOX_AXES; k++) {
        int axis = k - (GY_BOX_AXES - y->rank);
        int64_t before = axis < 0 ? 0 : y->axis[axis].before, after = axis < 0 ? 0 : y->axis[axis].after;
        own.shape[k] = w.count[k];
        own.first[k] = before;
        own.count[k] = w.count[k] - before - after;
    }
    return own;
}

/* All of an array that has the counts of another box. */
static gy_box whole_of(const gy_box *b)
{
    gy_box all = { { 0 }, { 0 }, { 0 } };
    for (int k = 0; k < GY_BOX_AXES; k++)
        all.count[k] = all.shape[k] = b->count[k];
    return all;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[0], *edges = &l->arg[1], *y = &l->arg[2];
    size_t size = gantry_dtype_size(x->dtype);
    gy_box box[GY_BOX_WAYS], own = own_box(y), from = whole_of(&own);
    const char *piece = edges->data;
    int count = gy_halo_taken(box, y);
    gantry_status status = gy_box_copy(l, y->data, &own, x->data, &from, size);
    for (int i = 0; i < count && !status; i++) {
        from = whole_of(&box[i]);
        status = gy_box_copy(l, y->data, &box[i], piece, &from, size);
        piece += (size_t)gy_box_elements(&box[i]) * size;
    }
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[0], *edges = &l->arg[1], *y = &l->arg[2];
    if (!x->whole || !y->whole || x->rank != y->rank)
        return gy_check_fail(text, size, "\"x\" and \"y\" must be tiles, of as many axes");
    gy_box own = own_box(y), box[GY_BOX_WAYS];
    gy_extent w = gy_extent_of(x);
    for (int k = 0; k < GY_BOX_AXES; k++)
        if (own.count[k] != w.count[k])
            return gy_check_fail(text, size,
                                 "\"x\" has %lld elements along an axis where \"y\" has %lld beside its halo; both "
                                 "must be tiles of one shape",
                                 (long long)w.count[k], (long long)own.count[k]);
    int64_t elements = 0, given = edges->rows * edges->row_bytes / (int64_t)gantry_dtype_size(edges->dtype);
    int count = gy_halo_taken(box, y);
    for (int i = 0; i < count; i++)
        elements += gy_box_elements(&box[i]);
    if (elements != given)
        return gy_check_fail(text, size, "\"edges\" has %lld elements; the halo of \"y\" has %lld", (long long)given,
                             (long long)elements);
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 'T', "a tile"),
    GY_REGION("edges", GANTRY_READ, 0, 'T', "what its neighbours gave, one piece behind the other"),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "the tile with its halo"),
};

const gantry_kernel gy_kernel_halo_unpack = { .struct_size = sizeof(gantry_kernel),
                                              .name = "halo_unpack",
                                              .summary = "y = a tile with what is around it",
                                              GANTRY_KERNEL_ARGS(args),
                                              .flops = "0",
                                              .bytes = "x.bytes + edges.bytes + y.bytes",
                                              .host = run,
                                              .check = check };
