/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of pixels that resize gives is a sum of two rows of its image, and so is each column: products with two
 * matrices, one for either axis. The adjoint is that of the transposed ones. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

typedef struct resized {
    gy_adjoint *a;
    const gy_primal *p;
    uint32_t image;                                         /* the buffer */
    int64_t frames, height, width, rows, columns, channels; /* pixels of the image, and of what is made of it */
} resized;

static gantry_region make(const resized *r, const char *name, int64_t stack, int64_t rows, int64_t columns)
{
    const int64_t shape[] = { stack, rows, columns };
    return gantry_all(gy_build_beside(r->a->graph, r->image, name, GANTRY_F32, 3, shape));
}

/* How much of pixel `from` is in pixel `to`, for an axis of so many: the place of `to` lies in the image, or on its
 * border, and what is less than a pixel away from it counts. */
static gantry_region make_weights(const resized *r, const char *name, int64_t to, int64_t from)
{
    gy_adjoint *a = r->a;
    const int64_t down[] = { 1, to, 1 };
    gantry_region made = make(r, "grad.weights", 1, to, from);
    gantry_buffer places = gy_rule_numbers(a, r->image, "grad.to", GANTRY_F64, 3, down, 0, 1);
    gantry_buffer pixels = gy_rule_numbers(a, r->image, "grad.from", GANTRY_F64, 1, &from, 0, 1);
    gantry_node node =
        gy_rule_map(a, r->p, name, "part = max(0, 1 - abs(min(max((to + 0.5) * apart - 0.5, 0), last) - from))");
    gantry_node_arg(a->graph, node, "part", made);
    gantry_node_arg(a->graph, node, "to", gantry_all(places));
    gantry_node_arg(a->graph, node, "from", gantry_all(pixels));
    gantry_node_scalar(a->graph, node, "apart", (double)from / (double)to);
    gantry_node_scalar(a->graph, node, "last", (double)(from - 1));
    return made;
}

/* The same elements in another shape. */
static gantry_region copy(const resized *r, const char *name, gantry_region from, gantry_region to)
{
    gy_adjoint_place(r->a, gantry_graph_copy(r->a->graph, gy_adjoint_id(r->a, r->p, name), from, to), r->p->node);
    return to;
}

static gantry_node begin_product(const resized *r, const char *name, gantry_region a, bool turn_a, gantry_region b)
{
    gantry_node node = gy_rule_begin(r->a, r->p, "gemm_batched", name);
    gantry_node_scalar(r->a->graph, node, "ta", turn_a);
    gantry_node_arg(r->a->graph, node, "a", a);
    gantry_node_arg(r->a->graph, node, "b", b);
    return node;
}

/* Pixels of one number are rows of a matrix for each frame; of several, matrices for each row. */
static void go_back_across(const resized *r, gantry_region given, gantry_region weights)
{
    gy_adjoint *a = r->a;
    gy_access image = gy_rule_access(a, r->p, "image");
    gy_destination target;
    if (r->channels == 1 && gy_adjoint_shape(a, &image).rank == 3) {
        target = gy_adjoint_target(a, &image);
        gantry_node node = begin_product(r, "image", given, false, weights);
        gantry_node_arg_as(a->graph, node, "c", target.region, gy_destination_access(&target));
        return;
    }
    int64_t all = r->frames * r->height;
    gantry_region apart = copy(r, "pixels", given, make(r, "grad.pixels", all, r->columns, r->channels));
    gantry_region made = make(r, "grad.made", all, r->width, r->channels);
    gantry_node node = begin_product(r, "across", weights, true, apart);
    gantry_node_arg(a->graph, node, "c", made);
    gantry_region to = gy_adjoint_written(a, &image, &target);
    copy(r, "image", made, to);
    gy_adjoint_add_rows(a, r->p, "image", to, &target);
}

gantry_status gy_resize_go_back(gy_adjoint *a, const gy_primal *p)
{
    gy_access image = gy_rule_access(a, p, "image"), out = gy_rule_access(a, p, "out");
    gy_maths_shape from = gy_adjoint_shape(a, &image), to = gy_adjoint_shape(a, &out);
    resized r = { .a = a, .p = p, .image = image.buffer };
    r.frames = from.extent[0];
    r.height = from.extent[1];
    r.width = from.extent[2];
    r.rows = to.extent[1];
    r.columns = to.extent[2];
    r.channels = from.rank == 4 ? from.extent[3] : 1;
    gantry_region given = gy_adjoint_of(a, &out);
    if (from.rank == 4)
        given = copy(&r, "rows", given, make(&r, "grad.rows", r.frames, r.rows, r.columns * r.channels));
    gantry_region down = make(&r, "grad.down", r.frames, r.height, r.columns * r.channels);
    gantry_node node = begin_product(&r, "down", make_weights(&r, "weights.down", r.rows, r.height), true, given);
    gantry_node_arg(a->graph, node, "c", down);
    go_back_across(&r, down, make_weights(&r, "weights.across", r.columns, r.width));
    return gy_adjoint_built(a);
}
