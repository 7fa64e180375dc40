/* SPDX-License-Identifier: Apache-2.0 */
/* Every mistake that only gantry_graph_check sees, with its exact text; graphs that are fine; warnings. */
#include "graph/build/build.h"
#include "graph/flow/flow.h"
#include "kernels.h"
#include <string.h>

static gantry_graph *g;
static gantry_buffer x, y, w, A;

static void set_up(void)
{
    g = gantry_graph_new("check");
    x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(12));
    y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, SHAPE(12));
    w = gantry_graph_buffer(g, "w", GANTRY_F64, 1, SHAPE(6));
    A = gantry_graph_buffer(g, "A", GANTRY_F32, 2, SHAPE(5, 7));
    gantry_buffer_split(g, x, 4);
    gantry_buffer_split(g, y, 4);
    gantry_buffer_tiles(g, A, 2, 3);
    gantry_buffer_init_value(g, x, 1);
}

static void tear_down(void)
{
    gantry_graph_free(g);
}

#define CASE(name) static void name(void)

/* ---- buffers and loops ---- */

CASE(temp_with_init)
{
    gantry_buffer_set_class(g, w, GANTRY_TEMP);
    gantry_buffer_init_iota(g, w);
}
CASE(const_written)
{
    gantry_buffer_set_class(g, x, GANTRY_CONST);
    gantry_node_write(g, gantry_graph_work(g, "n"), gantry_all(x));
}
CASE(const_reduced)
{
    gantry_buffer_set_class(g, x, GANTRY_CONST);
    gantry_node_reduce(g, gantry_graph_work(g, "n"), gantry_all(x), GANTRY_SUM);
}
CASE(const_carried)
{
    gantry_buffer_set_class(g, x, GANTRY_CONST);
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, y);
    gantry_graph_repeat_end(g);
}
CASE(carry_unlike)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, w);
    gantry_graph_repeat_end(g);
}
CASE(carry_other_cut)
{
    gantry_buffer v = gantry_graph_buffer(g, "v", GANTRY_F32, 1, SHAPE(12));
    gantry_buffer_split_auto(g, v, 4);
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, v);
    gantry_graph_repeat_end(g);
}
CASE(carry_tiles)
{
    gantry_buffer v = gantry_graph_buffer(g, "v", GANTRY_F32, 2, SHAPE(5, 7));
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, A, v);
    gantry_graph_repeat_end(g);
}
CASE(until_large)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_until(g, x, 1);
    gantry_graph_repeat_end(g);
}
CASE(repeat_open)
{
    gantry_graph_repeat(g, 2);
}
CASE(until_unwritten)
{
    gantry_buffer s = gantry_graph_buffer(g, "s", GANTRY_F32, 1, (int64_t[]){ 1 });
    gantry_graph_repeat(g, INT64_C(1) << 40); /* not too many: they are not unrolled */
    gantry_graph_until(g, s, 2);
    gantry_graph_work(g, "n");
    gantry_graph_repeat_end(g);
}
CASE(repeat_limit)
{
    gantry_graph_limit(g, 5);
    gantry_graph_repeat(g, 3);
    gantry_graph_work(g, "m");
    gantry_graph_work(g, "n");
    gantry_graph_repeat_end(g);
}

/* ---- nodes ---- */

CASE(arg_missing)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
}
CASE(scalar_missing)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_gather");
    gantry_node_arg(g, n, "to", gantry_part(x, 0));
    gantry_node_arg(g, n, "tiles", gantry_part(x, 1));
}
CASE(same_dtype)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "y", gantry_all(w));
    gantry_node_arg(g, n, "x", gantry_all(x));
}
CASE(manifest_check)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_arg(g, n, "y", gantry_part(y, 0));
}
/* a = 10 + it is 13 in iteration 3 only. */
static const gy_expr *parse(const char *text)
{
    const gy_expr *e = NULL;
    ck_assert_int_eq(gy_expr_parse(&e, &g->arena, text, strlen(text), GANTRY_E_GRAPH, NULL, NULL), GANTRY_OK);
    return e;
}
CASE(manifest_check_later)
{
    gantry_graph_repeat(g, 5);
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_arg(g, n, "y", gantry_all(y));
    gy_node_scalar_expr(g, n, "a", parse("10 + it"), false);
    gantry_graph_repeat_end(g);
}
CASE(scalar_fails_later)
{
    gantry_graph_repeat(g, 5);
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_arg(g, n, "y", gantry_all(y));
    gy_node_scalar_expr(g, n, "a", parse("1 / (it - 2)"), false);
    gantry_graph_repeat_end(g);
}
CASE(cost_fails)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x)); /* rank 1: there is no x.shape1 for the scratch */
    gantry_node_arg(g, n, "y", gantry_all(y));
}
CASE(cost_negative)
{
    gantry_node n = gantry_graph_kernel(g, "n", "t_gather");
    gantry_node_arg(g, n, "to", gantry_part(x, 0));
    gantry_node_arg(g, n, "tiles", gantry_part(x, 1));
    gantry_node_scalar(g, n, "n", -2);
}
CASE(copy_dtypes)
{
    gantry_graph_copy(g, "c", gantry_all(x), gantry_all(w));
}
CASE(copy_sizes)
{
    gantry_graph_copy(g, "c", gantry_part(x, 0), gantry_all(y));
}
CASE(copy_cut)
{
    gantry_buffer B = gantry_graph_buffer(g, "B", GANTRY_F32, 2, SHAPE(5, 7));
    gantry_buffer_init_value(g, B, 1);
    gantry_graph_copy(g, "c", gantry_all(B), gantry_all(A));
}
CASE(copy_cut_otherwise)
{
    gantry_buffer B = gantry_graph_buffer(g, "B", GANTRY_F32, 2, SHAPE(7, 5));
    gantry_buffer_tiles(g, B, 2, 3);
    gantry_buffer_init_value(g, B, 1);
    gantry_graph_copy(g, "c", gantry_all(B), gantry_all(A));
}

/* ---- overlaps ---- */

CASE(overlap_write_read)
{
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_read(g, n, gantry_halo(gantry_part(x, 1), 1, 1));
    gantry_node_write(g, n, gantry_part(x, 1));
}
CASE(overlap_reductions)
{
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_reduce(g, n, gantry_rows(x, 2, 5), GANTRY_SUM);
    gantry_node_reduce(g, n, gantry_rows(x, 4, 6), GANTRY_SUM);
}
CASE(overlap_copy)
{
    gantry_graph_copy(g, "c", gantry_rows(x, 0, 4), gantry_rows(x, 3, 7));
}
CASE(overlap_tiles)
{
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_write(g, n, gantry_tile(A, 1, 1));
    gantry_node_write(g, n, gantry_tiles(A, 1, 2, 0, 3));
}
CASE(overlap_many)
{
    gantry_buffer big = gantry_graph_buffer(g, "big", GANTRY_F32, 1, SHAPE(1000));
    gantry_node n = gantry_graph_work(g, "n");
    for (int i = 39; i >= 0; i--)
        gantry_node_write(g, n, gantry_rows(big, 10 * i, 10 * i + 10));
    gantry_node_read(g, n, gantry_rows(big, 900, 950));
    gantry_node_read(g, n, gantry_rows(big, 255, 256));
}
CASE(overlap_names_after_loop)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, y);
    gantry_node in = gantry_graph_work(g, "in");
    gantry_node_read(g, in, gantry_all(x));
    gantry_node_write(g, in, gantry_all(y));
    gantry_graph_repeat_end(g);
    gantry_node out = gantry_graph_work(g, "out");
    gantry_node_read(g, out, gantry_part(x, 0));
    gantry_node_write(g, out, gantry_part(y, 0));
}

/* ---- collectives ---- */

static void collective(gantry_collective kind, gantry_access op, size_t ins, size_t outs, int root)
{
    gantry_region in[8], out[8];
    for (int i = 0; i < 8; i++) {
        in[i] = gantry_part(x, i % 4);
        out[i] = gantry_part(y, i % 4);
    }
    gantry_graph_collective(g, "c", kind, op, ins, in, outs, out, root);
}
CASE(all_reduce_counts)
{
    collective(GANTRY_ALL_REDUCE, GANTRY_SUM, 3, 2, 0);
}
CASE(all_reduce_none)
{
    collective(GANTRY_ALL_REDUCE, GANTRY_SUM, 0, 0, 0);
}
CASE(broadcast_counts)
{
    collective(GANTRY_BROADCAST, (gantry_access)0, 2, 2, 0);
}
CASE(gather_counts)
{
    collective(GANTRY_GATHER, (gantry_access)0, 2, 2, 0);
}
CASE(reduce_no_op)
{
    collective(GANTRY_REDUCE, GANTRY_READ, 2, 1, 0);
}
CASE(gather_op)
{
    collective(GANTRY_ALL_GATHER, GANTRY_SUM, 2, 2, 0);
}
CASE(reduce_root)
{
    collective(GANTRY_REDUCE, GANTRY_SUM, 3, 1, 3);
}
CASE(all_reduce_root)
{
    collective(GANTRY_ALL_REDUCE, GANTRY_SUM, 2, 2, 1);
}
CASE(all_gather_sizes)
{
    collective(GANTRY_ALL_GATHER, (gantry_access)0, 2, 2, 0);
}
CASE(reduce_scatter_sizes)
{
    collective(GANTRY_REDUCE_SCATTER, GANTRY_MAX, 2, 2, 0);
}
CASE(all_to_all_division)
{
    collective(GANTRY_ALL_TO_ALL, (gantry_access)0, 2, 2, 0);
}
CASE(scatter_sizes)
{
    gantry_region in = gantry_all(x), out[2] = { gantry_part(y, 0), gantry_part(y, 1) };
    gantry_graph_collective(g, "c", GANTRY_SCATTER, (gantry_access)0, 1, &in, 2, out, 0);
}
CASE(gather_sizes)
{
    gantry_region out = gantry_all(y), in[2] = { gantry_part(x, 0), gantry_part(x, 1) };
    gantry_graph_collective(g, "c", GANTRY_GATHER, (gantry_access)0, 2, in, 1, &out, 0);
}
CASE(broadcast_sizes)
{
    gantry_region in = gantry_part(x, 0), out[2] = { gantry_part(y, 0), gantry_parts(y, 1, 3) };
    gantry_graph_collective(g, "c", GANTRY_BROADCAST, (gantry_access)0, 1, &in, 2, out, 0);
}
CASE(collective_dtypes)
{
    gantry_region in = gantry_part(x, 0), out[2] = { gantry_part(y, 0), gantry_rows(w, 0, 3) };
    gantry_graph_collective(g, "c", GANTRY_BROADCAST, (gantry_access)0, 1, &in, 2, out, 0);
}
/* Rank 0 works in place; rank 1 writes what rank 0 reads. */
CASE(collective_place)
{
    gantry_region in[2] = { gantry_part(x, 0), gantry_part(x, 1) }, out[2] = { gantry_part(x, 1), gantry_part(x, 0) };
    gantry_graph_collective(g, "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, in, 2, out, 0);
}

/* ---- order and place ---- */

CASE(apart_with)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b"), c = gantry_graph_work(g, "c");
    gantry_node_with(g, a, b);
    gantry_node_with(g, c, b);
    gantry_node_apart(g, a, c);
}
CASE(circle_of_two)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_after(g, a, b);
    gantry_node_after(g, b, a);
}
/* a writes what b reads, and a is after c, which is after b. */
CASE(circle_by_data)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b"), c = gantry_graph_work(g, "c");
    gantry_node_write(g, a, gantry_part(y, 2));
    gantry_node_read(g, b, gantry_part(y, 2));
    gantry_node_after(g, a, c);
    gantry_node_after(g, c, b);
}
CASE(circle_long)
{
    gantry_node n[12];
    for (int i = 0; i < 12; i++)
        n[i] = gantry_graph_work(g, "n");
    for (int i = 0; i < 12; i++)
        gantry_node_after(g, n[(i + 1) % 12], n[i]);
}
CASE(circle_in_loop)
{
    gantry_graph_repeat(g, 3);
    gantry_node a = gantry_graph_work(g, "a");
    gantry_graph_repeat_end(g);
    gantry_node b = gantry_graph_work(g, "b");
    gantry_node_after(g, a, b);
    gantry_node_after(g, b, a);
}

/* ---- contents ---- */

CASE(read_unwritten)
{
    gantry_node_read(g, gantry_graph_work(g, "n"), gantry_part(y, 1));
}
CASE(read_half_written)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_write(g, a, gantry_rows(y, 0, 4));
    gantry_node_write(g, a, gantry_rows(y, 7, 12));
    gantry_node_read(g, b, gantry_rows(y, 2, 9));
}
CASE(read_unwritten_all)
{
    gantry_node_readwrite(g, gantry_graph_work(g, "n"), gantry_all(w));
}
CASE(read_unwritten_tile)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_write(g, a, gantry_tiles(A, 0, 1, 0, 3));
    gantry_node_read(g, b, gantry_all(A));
}
CASE(read_next_in_loop)
{
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, x, y);
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_read(g, a, gantry_all(x));
    gantry_node_write(g, b, gantry_parts(y, 0, 3));
    gantry_graph_repeat_end(g);
}
CASE(output_unwritten)
{
    gantry_buffer_output(g, y);
    gantry_node_write(g, gantry_graph_work(g, "n"), gantry_parts(y, 1, 4));
}
CASE(output_tile_unwritten)
{
    gantry_buffer_output(g, A);
    gantry_node_write(g, gantry_graph_work(g, "n"), gantry_tiles(A, 0, 1, 0, 3));
}
CASE(state_lost)
{
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, y);
    gantry_node_write(g, gantry_graph_work(g, "n"), gantry_part(y, 0));
    gantry_graph_repeat_end(g);
}
CASE(mixed_reductions)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_reduce(g, a, gantry_rows(x, 0, 6), GANTRY_SUM);
    gantry_node_reduce(g, b, gantry_rows(x, 4, 9), GANTRY_MAX);
}

static const struct mistake {
    void (*make)(void);
    const char *text;
} mistakes[] = {
    { temp_with_init,
      "buffer \"w\" is temp, undefined at every start, and has an init; drop the init or make it input or state" },
    { const_written,
      "node \"n\" has access write to const buffer \"x\"; only its init or binding fills it: make it state or input" },
    { const_reduced,
      "node \"n\" has access sum to const buffer \"x\"; only its init or binding fills it: make it state or input" },
    { const_carried, "const buffer \"x\" is carried; its contents would change: make it state or input" },
    { carry_unlike, "\"x\" is carried from \"w\", but is f32[12] in 4 parts and not f64[6]; both must agree in dtype, "
                    "shape and cut" },
    { carry_other_cut,
      "\"x\" is carried from \"v\", but is f32[12] in 4 parts and not f32[12] in 4 automatic parts; both "
      "must agree in dtype, shape and cut" },
    { carry_tiles, "\"A\" is carried from \"v\", but is f32[5,7] in 2 x 3 tiles and not f32[5,7]; both must agree in "
                   "dtype, shape and cut" },
    { until_large, "until watches \"x\", which has 12 elements; it must have one" },
    { repeat_open, "a repeat without its end; call gantry_graph_repeat_end" },
    { until_unwritten, "until watches \"s\", which nothing has written at the end of an iteration; write it in the "
                       "repeat, or give it an init" },
    { repeat_limit, "with node \"n\", the repeats unroll to more than 5 tasks, the limit of a graph; repeat less often "
                    "within one start, or raise the limit (--limits)" },
    { arg_missing, "node \"n\": argument \"y\" of kernel \"t_scale\" is missing; give it a region of a buffer" },
    { scalar_missing, "node \"n\": argument \"n\" of kernel \"t_gather\" is missing; give it a number" },
    { same_dtype, "node \"n\": arguments \"x\" (f32) and \"y\" (f64) of kernel \"t_scale\" must have the same dtype" },
    { manifest_check, "node \"n\", kernel \"t_scale\": x has 12 rows and y has 3" },
    { manifest_check_later, "node \"n\", kernel \"t_scale\": a is 13 in iteration 3" },
    { scalar_fails_later,
      "node \"n\", argument \"a\", iteration 2: in expression \"1 / (it - 2)\": 1 / 0: division by zero" },
    { cost_fails, "node \"n\": scratch of kernel \"t_scale\": in expression \"8 * x.rows + x.shape0 * x.shape1\": "
                  "unknown name \"x.shape1\"" },
    { cost_negative, "node \"n\": flops of kernel \"t_gather\" is -2; it must be finite and at least 0" },
    { copy_dtypes, "copy \"c\" from \"x\" (f32) to \"w\" (f64); both must have the same dtype" },
    { copy_sizes, "copy \"c\" from 3 elements of \"x\" to 12 of \"y\"; both must be as many" },
    { copy_cut, "copy \"c\" from \"B\" to \"A\" would change how tiles are cut; copy tile by tile between tiles of one "
                "shape" },
    { copy_cut_otherwise,
      "copy \"c\" from \"B\" to \"A\" would change how tiles are cut; copy tile by tile between tiles "
      "of one shape" },
#define OVERLAP "; accesses of a node may overlap only if all read: use a second buffer"
    { overlap_write_read, "node \"n\" has access read to x[1]~1 and write to x[1]: x[1] is in both" OVERLAP },
    { overlap_reductions, "node \"n\" has access sum to x{2:5} and sum to x{4:6}: x{4:5} is in both" OVERLAP },
    { overlap_copy, "node \"c\" has access read to x{0:4} and write to x{3:7}: x{3:4} is in both" OVERLAP },
    { overlap_tiles, "node \"n\" has access write to A[1][1] and write to A[1][0:3]: A[1][1] is in both" OVERLAP },
    { overlap_many,
      "node \"n\" has access write to big{250:260} and read to big{255:256}: big{255:256} is in both" OVERLAP },
    { overlap_names_after_loop, "node \"out\" uses \"x\" and \"y\", which mean the same after the repeat that carries "
                                "them, and does not only read: use another buffer" },
    { all_reduce_counts, "all_reduce \"c\" has 3 regions in and 2 out; it takes one a rank in and as many out" },
    { all_reduce_none, "all_reduce \"c\" has 0 regions in and 0 out; it takes one a rank in and as many out" },
    { broadcast_counts, "broadcast \"c\" has 2 regions in and 2 out; it takes one in and one a rank out" },
    { gather_counts, "gather \"c\" has 2 regions in and 2 out; it takes one a rank in and one out" },
    { reduce_no_op, "reduce \"c\" has op 1; it takes GANTRY_SUM, MIN, MAX or PROD" },
    { gather_op, "all_gather \"c\" has op 4; it takes none: pass 0" },
    { reduce_root, "reduce \"c\" has root 3; ranks are 0 to 2" },
    { all_reduce_root, "all_reduce \"c\" has root 1; it has no root: pass 0" },
    { all_gather_sizes, "all_gather \"c\": y[0] has 3 elements and should have 6, as many as all regions in together" },
    { reduce_scatter_sizes,
      "reduce_scatter \"c\": x[0] has 3 elements and should have 6, as many as all regions out together" },
    { all_to_all_division, "all_to_all \"c\" sends 3 elements a rank, which 2 ranks do not divide; give each rank a "
                           "multiple of 2, or take other ranks" },
    { scatter_sizes, "scatter \"c\": x has 12 elements and should have 6, as many as all regions out together" },
    { gather_sizes, "gather \"c\": y has 12 elements and should have 6, as many as all regions in together" },
    { broadcast_sizes, "broadcast \"c\": y[1:3] has 6 elements and should have 3, as many as the first" },
    { collective_dtypes, "broadcast \"c\" joins \"x\" (f32) and \"w\" (f64); all must have the same dtype" },
    { collective_place, "node \"c\" has access read to x[1] and write to x[1]: x[1] is in both" OVERLAP },
    { apart_with, "node \"a\" is apart from \"c\" and, by `with`, on the same device; drop one of both" },
    { circle_of_two, "nodes wait for each other in a circle: \"a\" -> \"b\" -> \"a\"; drop one `after`" },
    { circle_by_data, "nodes wait for each other in a circle: \"a\" -> \"b\" -> \"c\" -> \"a\"; drop one `after`" },
    { circle_long,
      "nodes wait for each other in a circle: \"n\" -> \"n#1\" -> \"n#2\" -> \"n#3\" -> \"n#4\" -> \"n#5\" -> "
      "\"n#6\" -> \"n#7\" -> (4 more) -> \"n\"; drop one `after`" },
    { circle_in_loop,
      "nodes wait for each other in a circle: \"a\" (iteration 0) -> \"b\" -> \"a\" (iteration 0); drop one `after`" },
#define UNWRITTEN(name)                                                                                                \
    ", which nothing has written or initialised; write it before, or give \"" name "\" an init, or the class "         \
    "\"input\""
    { read_unwritten, "node \"n\" reads y[1]" UNWRITTEN("y") },
    { read_half_written, "node \"b\" reads y{4:7}" UNWRITTEN("y") },
    { read_unwritten_all, "node \"n\" reads w" UNWRITTEN("w") },
    { read_unwritten_tile, "node \"b\" reads A[1][0:3]" UNWRITTEN("A") },
    { read_next_in_loop, "node \"a\" (iteration 1) reads x[3]" UNWRITTEN("x") },
    { output_unwritten,
      "y[0] is fetched at the end of a start, but nothing has written or initialised it; write it, or "
      "give \"y\" an init" },
    { output_tile_unwritten,
      "A[1][0:3] is fetched at the end of a start, but nothing has written or initialised it; write "
      "it, or give \"A\" an init" },
    { state_lost, "x[1:4] is kept as state at the end of a start, but nothing has written or initialised it; write it, "
                  "or give \"x\" an init" },
    { mixed_reductions,
      "node \"b\" contributes max to x{4:6}, which is in the middle of sum contributions; read the result "
      "or fill it before contributing otherwise" },
};

START_TEST(text_of_mistake)
{
    gantry_error err;
    mistakes[_i].make();
    ck_assert_msg(g->error.status == GANTRY_OK, "while building: %s", g->error.text);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, mistakes[_i].text);
    ck_assert_int_gt(err.line, 0);
    ck_assert_int_eq(gantry_graph_check(g, NULL), GANTRY_E_GRAPH);
}
END_TEST

/* ---- what is fine ---- */

CASE(fine_in_place)
{
    gantry_region r[20];
    gantry_buffer big = gantry_graph_buffer(g, "big", GANTRY_F32, 1, SHAPE(100));
    gantry_buffer_init_value(g, big, 0);
    for (int i = 0; i < 20; i++)
        r[i] = gantry_rows(big, 5 * i, 5 * i + 5);
    gantry_graph_collective(g, "many", GANTRY_ALL_REDUCE, GANTRY_MIN, 20, r, 20, r, 0);
    gantry_graph_collective(g, "few", GANTRY_ALL_REDUCE, GANTRY_MIN, 4, r, 4, r, 0);
    gantry_graph_collective(g, "root", GANTRY_REDUCE, GANTRY_MIN, 4, r, 1, &r[2], 2);
    gantry_graph_collective(g, "from", GANTRY_BROADCAST, (gantry_access)0, 1, &r[1], 4, r, 1);
}
CASE(fine_overlap_of_reads)
{
    gantry_node n = gantry_graph_work(g, "n");
    for (int i = 0; i < 30; i++)
        gantry_node_read(g, n, gantry_all(x));
}
CASE(fine_empty)
{
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_read(g, n, gantry_rows(w, 3, 3));
    gantry_node_write(g, n, gantry_rows(y, 5, 5));
    gantry_node_write(g, n, gantry_rows(y, 0, 12));
    gantry_buffer none = gantry_graph_buffer(g, "none", GANTRY_F32, 2, SHAPE(0, 3));
    gantry_buffer_output(g, none);
    gantry_node_read(g, n, gantry_all(none));
    gantry_graph_repeat(g, 0);
    gantry_node_read(g, gantry_graph_work(g, "never"), gantry_all(w));
    gantry_graph_repeat_end(g);
    gantry_graph_repeat(g, INT64_MAX);
    gantry_graph_carry(g, x, y);
    gantry_graph_repeat_end(g);
}
CASE(fine_collectives)
{
    gantry_region in[4], out[4], whole_x = gantry_all(x), whole_y = gantry_all(y);
    for (int i = 0; i < 4; i++) {
        in[i] = gantry_part(x, i);
        out[i] = gantry_part(y, i);
    }
    gantry_graph_collective(g, "s", GANTRY_SCATTER, (gantry_access)0, 1, &whole_x, 4, out, 3);
    gantry_graph_collective(g, "g", GANTRY_GATHER, (gantry_access)0, 4, in, 1, &whole_y, 0);
    gantry_graph_collective(g, "a", GANTRY_ALL_TO_ALL, (gantry_access)0, 3, in, 3, out, 0);
    gantry_graph_collective(g, "r", GANTRY_REDUCE_SCATTER, GANTRY_PROD, 1, &whole_x, 1, &whole_y, 0);
    gantry_graph_collective(g, "ag", GANTRY_ALL_GATHER, (gantry_access)0, 1, &whole_x, 1, &whole_y, 0);
}
CASE(fine_reductions)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b"), c = gantry_graph_work(g, "c");
    gantry_node_reduce(g, a, gantry_all(y), GANTRY_SUM);
    gantry_node_read(g, b, gantry_all(y));
    gantry_node_reduce(g, c, gantry_all(y), GANTRY_MAX);
    gantry_buffer_output(g, y);
}
CASE(fine_class_from_init)
{
    ck_assert_int_eq(g->buffers.at[x.id].cls, GANTRY_INPUT);
    ck_assert_int_eq(g->buffers.at[y.id].cls, GANTRY_TEMP);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_normal(g, w, 1, 0, 1);
    ck_assert_int_eq(g->buffers.at[w.id].cls, GANTRY_STATE);
}
CASE(fine_forward_after)
{
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_after(g, a, b);
}

static void (*const fine[])(void) = { fine_in_place,   fine_overlap_of_reads, fine_empty,        fine_collectives,
                                      fine_reductions, fine_class_from_init,  fine_forward_after };

START_TEST(graph_is_fine)
{
    gantry_error err;
    fine[_i]();
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(g->warnings.count, 0);
}
END_TEST

/* ---- warnings ---- */

static int loop_line; /* where add_loop adds nodes */

static void add_loop(int64_t count, bool fill, bool carried)
{
    gantry_graph_repeat(g, count);
    if (fill)
        gantry_graph_fill(g, NULL, gantry_all(y), 0);
    if (carried)
        gantry_graph_carry(g, x, y);
    for (int i = 0; i < 3; i++) {
        loop_line = __LINE__ + 1;
        gantry_node_reduce(g, gantry_graph_work(g, "n"), gantry_part(y, i), GANTRY_SUM);
    }
    gantry_graph_repeat_end(g);
}

START_TEST(warnings)
{
    gantry_error err;
    add_loop(4, true, false);
    add_loop(1, false, false);
    add_loop(4, false, true);
    add_loop(4, false, false);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(g->warnings.count, 1);
    ck_assert_str_eq(
        g->warnings.at[0].text,
        "the reduction into \"y\" is never reset inside its repeat, so every iteration adds to the last; add a "
        "fill to the loop if that is not meant");
    ck_assert_int_eq(g->origins.at[g->warnings.at[0].origin].line, loop_line);
}
END_TEST

/* Two outputs of which some is written, one that is written wholly, one that is carried. */
START_TEST(warnings_of_unwritten_outputs)
{
    gantry_error err;
    gantry_buffer b[4], t = gantry_graph_buffer(g, "tiled", GANTRY_F32, 2, (int64_t[]){ 6, 6 });
    gantry_buffer_tiles(g, t, 3, 3);
    gantry_buffer_init_value(g, t, 1);
    gantry_buffer_output(g, t);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        b[i] = gantry_graph_buffer(g, name, GANTRY_F32, 1, (int64_t[]){ 12 });
        gantry_buffer_init_value(g, b[i], 1);
        gantry_buffer_output(g, b[i]);
    }
    gantry_node n = gantry_graph_work(g, "n");
    gantry_node_readwrite(g, n, gantry_tile(t, 0, 0));
    gantry_node_write(g, n, gantry_tile(t, 2, 1));
    gantry_node_write(g, n, gantry_rows(b[0], 0, 7));
    gantry_node_write(g, n, gantry_rows(b[0], 7, 12));
    gantry_node_read(g, n, gantry_all(b[1]));
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, b[2], b[3]);
    gantry_node m = gantry_graph_work(g, "m");
    gantry_node_read(g, m, gantry_all(b[2]));
    gantry_node_write(g, m, gantry_all(b[3]));
    gantry_graph_repeat_end(g);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(g->warnings.count, 2);
    ck_assert_str_eq(
        g->warnings.at[0].text,
        "no node writes 7 of the 9 tiles of output \"tiled\", first tiled[0][1]..[2][0]: each start hands them over "
        "as they came in; write them, or make what is written a buffer of its own");
    ck_assert_str_eq(g->warnings.at[1].text,
                     "no node writes 12 of the 12 rows of output \"b1\", first b1: each start hands them over as "
                     "they came in; write them, or make what is written a buffer of its own");
}
END_TEST

/* Tiles of one triangle of 3 x 3 are written; of the other one none, or a single one. */
static size_t warnings_of_triangle(bool lower, bool diagonal, int of_other)
{
    gantry_error err;
    gantry_graph *made = gantry_graph_new("triangle");
    gantry_buffer a = gantry_graph_buffer(made, "a", GANTRY_F64, 2, (int64_t[]){ 6, 6 });
    gantry_buffer_tiles(made, a, 3, 3);
    gantry_buffer_init_value(made, a, 1);
    gantry_buffer_output(made, a);
    gantry_node n = gantry_graph_work(made, "n");
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i + diagonal; j++)
            gantry_node_readwrite(made, n, lower ? gantry_tile(a, i, j) : gantry_tile(a, j, i));
    for (int i = 0; i < of_other; i++)
        gantry_node_readwrite(made, n, lower ? gantry_tile(a, 0, 2) : gantry_tile(a, 2, 0));
    ck_assert_msg(gantry_graph_check(made, &err) == GANTRY_OK, "%s", err.text);
    size_t count = made->warnings.count;
    gantry_graph_free(made);
    return count;
}

START_TEST(half_of_a_symmetric_matrix_is_no_mistake)
{
    for (int lower = 0; lower < 2; lower++) {
        ck_assert_uint_eq(warnings_of_triangle(lower, true, 0), 0);
        ck_assert_uint_eq(warnings_of_triangle(lower, true, 1), 1);
        ck_assert_uint_eq(warnings_of_triangle(lower, false, 0), 1);
    }
}
END_TEST

/* Three nodes of one line write the whole buffer, with or without a reader after each. */
static void add_family(gantry_buffer b, bool read)
{
    for (int i = 0; i < 3; i++) {
        gantry_node_write(g, gantry_graph_work(g, "put"), gantry_all(b));
        if (read)
            gantry_node_read(g, gantry_graph_work(g, "get"), gantry_all(b));
    }
}

/* Lost: all rows of one node by another of its family. Not lost: what is read, added to, written elsewhere, or by
 * nodes of different lines (a fill before what fills it better). */
START_TEST(warnings_of_lost_results)
{
    gantry_error err;
    gantry_buffer b = gantry_graph_buffer(g, "sum", GANTRY_F32, 1, SHAPE(12));
    gantry_buffer_split(g, b, 3);
    add_family(b, true);
    for (int i = 0; i < 3; i++)
        gantry_node_write(g, gantry_graph_work(g, "part"), gantry_part(b, i));
    for (int i = 0; i < 3; i++)
        gantry_node_reduce(g, gantry_graph_work(g, "add"), gantry_all(b), GANTRY_SUM);
    gantry_node_write(g, gantry_graph_work(g, "first"), gantry_all(b));
    gantry_node_write(g, gantry_graph_work(g, "second"), gantry_all(b));
    gantry_graph_repeat(g, 4);
    gantry_node_write(g, gantry_graph_work(g, "alone"), gantry_all(b));
    gantry_graph_repeat_end(g);
    add_family(b, false);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(g->warnings.count, 1);
    ck_assert_str_eq(
        g->warnings.at[0].text,
        "node \"put#4\" writes over sum, which node \"put#3\" wrote and nothing has read: that result is lost; "
        "add both up (access \"sum\", or \"readwrite\" where the kernel has that), or give each a region of "
        "its own");
}
END_TEST

/* y = 2 x in a repeat, which nothing changes; `more` makes it a loop that goes somewhere. */
static void add_idle(int64_t count, char more)
{
    gantry_buffer z = gantry_graph_buffer(g, "z", GANTRY_F32, 1, SHAPE(12));
    gantry_buffer flag = gantry_graph_buffer(g, "flag", GANTRY_I32, 1, SHAPE(1));
    gantry_buffer_init_value(g, flag, 0);
    gantry_graph_repeat(g, count);
    if (more == 'c')
        gantry_graph_carry(g, x, y);
    gantry_node n = gantry_graph_map(g, NULL, more == 'r' ? "y = y + x" : "y = 2 * x");
    gantry_node_arg(g, n, "y", gantry_all(y));
    gantry_node_arg(g, n, "x", gantry_all(x));
    if (more == 'b' || more == 'i') /* what comes back: x follows from y; and what does not */
        gantry_graph_copy(g, NULL, gantry_all(y), more == 'b' ? gantry_all(x) : gantry_all(z));
    if (more == 'w')
        gantry_node_read(g, gantry_graph_work(g, "work"), gantry_all(x));
    if (more == 'u')
        gantry_graph_until(g, flag, 1);
    gantry_graph_repeat_end(g);
}

START_TEST(warnings_of_loops_that_go_nowhere)
{
    static const struct {
        int64_t count;
        char more;
        size_t warnings;
    } cases[] = { { 3, 0, 1 },   { 3, 'i', 1 }, { 1, 0, 0 },   { 3, 'c', 0 },
                  { 3, 'r', 0 }, { 3, 'b', 0 }, { 3, 'w', 0 }, { 3, 'u', 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_error err;
        tear_down();
        set_up();
        gantry_buffer_init_value(g, y, 0);
        add_idle(cases[i].count, cases[i].more);
        ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%c: %s", cases[i].more, err.text);
        ck_assert_msg(g->warnings.count == cases[i].warnings, "%c: %zu warnings", cases[i].more, g->warnings.count);
        for (size_t k = 0; k < g->warnings.count; k++)
            ck_assert_ptr_nonnull(strstr(g->warnings.at[k].text,
                                         "every iteration of the repeat does the same, since none "
                                         "reads what the one before wrote; say what is carried"));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph_check_errors");
    TCase *c = tcase_create("check");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, text_of_mistake, 0, (int)(sizeof mistakes / sizeof *mistakes));
    tcase_add_loop_test(c, graph_is_fine, 0, (int)(sizeof fine / sizeof *fine));
    tcase_add_test(c, warnings);
    tcase_add_test(c, warnings_of_unwritten_outputs);
    tcase_add_test(c, half_of_a_symmetric_matrix_is_no_mistake);
    tcase_add_test(c, warnings_of_lost_results);
    tcase_add_test(c, warnings_of_loops_that_go_nowhere);
    suite_add_tcase(s, c);
    return run_suite(s);
}
