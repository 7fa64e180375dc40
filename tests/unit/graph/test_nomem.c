/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with one of everything, built and checked with ever more memory: every failure is reported, nothing leaks. */
#include "graph/build/build.h"
#include "graph/flow/flow.h"
#include "kernels.h"
#include "support/survive.h"
#include <string.h>

static void add_buffers(gantry_graph *g, gantry_buffer *x, gantry_buffer *y, gantry_buffer *A)
{
    *x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(12, 3));
    *y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, SHAPE(12, 3));
    *A = gantry_graph_buffer(g, "A", GANTRY_F32, 2, SHAPE(6, 6));
    gantry_buffer_split(g, *x, 4);
    gantry_buffer_split(g, *y, 4);
    gantry_buffer_tiles(g, *A, 2, 2);
    gantry_buffer_init_npy(g, *x, "x.npy");
    gantry_buffer_init_value(g, *A, 1);
    gantry_buffer_output(g, *y);
}

/* Kernels, lists, late arguments, forward `after`, collectives, a loop with carry, a reduction that draws a warning. */
static gantry_graph *build(void)
{
    gantry_graph *g = gantry_graph_new("nomem");
    gantry_buffer x, y, A;
    add_buffers(g, &x, &y, &A);
    gantry_graph_repeat(g, 2);
    gantry_node r = gantry_graph_work(g, "sum");
    gantry_node_reduce(g, r, gantry_all(A), GANTRY_SUM);
    gantry_graph_repeat_end(g);
    gantry_graph_repeat(g, 3);
    gantry_graph_index(g, "step");
    gantry_graph_carry(g, x, y);
    gantry_node n[4];
    for (int i = 0; i < 4; i++) {
        n[i] = gantry_graph_launch(g, "step", do_nothing, NULL);
        gantry_node_read(g, n[i], gantry_halo(gantry_part(x, i), 1, 0));
    }
    for (int i = 0; i < 4; i++) {
        gantry_node_write(g, n[i], gantry_part(y, i));
        if (i < 3)
            gantry_node_after(g, n[i], n[i + 1]); /* the later node first */
    }
    gantry_graph_repeat_end(g);
    static const char *const defaults[] = { "x.rows", NULL, NULL };
    static gantry_kernel own;
    own = scale_kernel;
    own.name = "own";
    own.struct_size = offsetof(gantry_kernel, open); /* of a program of another version: it is copied */
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.image = "// PTX";
    code.bytes = 6;
    code.grid[0] = "x.rows";
    code.block[0] = "32";
    code.defaults = defaults;
    gantry_graph_add_cuda_kernel(g, &own, &code);
    gantry_node m = gantry_graph_map(g, "map", "b = a * s; c = sqrt(b)");
    gantry_node_arg(g, m, "a", gantry_tile(A, 0, 0));
    gantry_node_arg(g, m, "b", gantry_tile(A, 0, 1));
    gantry_node_arg(g, m, "c", gantry_tile(A, 1, 0));
    gantry_node_scalar(g, m, "s", 3);
    gantry_node k = gantry_graph_kernel(g, "gather", "t_gather"), s = gantry_graph_kernel(g, NULL, "t_scale");
    gantry_node_arg(g, k, "tiles", gantry_tiles(A, 0, 2, 0, 1));
    gantry_node_arg(g, s, "x", gantry_tile(A, 0, 1));
    gantry_node_arg(g, s, "y", gantry_tile(A, 1, 1));
    gantry_node_arg(g, k, "to", gantry_tile(A, 0, 1));
    gantry_node_scalar_expr(g, s, "a", "2 * 3");
    gantry_node_scalar(g, k, "n", 2);
    gantry_node_read(g, k, gantry_all(y));
    gantry_node_on(g, k, "devices - 1");
    gantry_node_on(g, s, "gpu0");
    gantry_node_with(g, s, k);
    gantry_node_apart(g, s, r);
    gantry_node_time(g, s, "P1", 3);
    gantry_region in[4], out[4];
    for (int i = 0; i < 4; i++) {
        in[i] = gantry_part(y, i);
        out[i] = gantry_part(x, i);
    }
    gantry_node_algorithm(g, gantry_graph_collective(g, NULL, GANTRY_ALL_REDUCE, GANTRY_SUM, 4, in, 4, in, 0), "ring");
    gantry_contents contents = GANTRY_CONTENTS_INIT;
    contents.exact[0] = "2 * 4";
    gantry_graph_fill_with(g, NULL, out[0], &contents);
    gy_graph_set_source(g, "text", NULL, NULL);
    gy_graph_set_origin(g, "/nodes/9");
    gy_graph_add_param(g, "n", 4, 4, false);
    (gantry_graph_work)(g, "late");
    return g;
}

static bool build_and_check(void)
{
    gantry_error err;
    gantry_graph *g = build();
    gantry_status status = gantry_graph_check(g, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "%s", err.text);
    if (status == GANTRY_OK) {
        ck_assert_uint_eq(g->warnings.count, 1);
        ck_assert_uint_eq(g->flow->tasks, 2 + 12 + 6);
    }
    gantry_graph_free(g);
    return status == GANTRY_OK;
}

START_TEST(everything)
{
    assert_survives(build_and_check, 50);
}
END_TEST

/* A mistake is reported as one, or as out of memory; never as something else, never not at all. */
static bool report_circle(void)
{
    gantry_error err;
    gantry_graph *g = gantry_graph_new("circle");
    gantry_node a = gantry_graph_work(g, "a"), b = gantry_graph_work(g, "b");
    gantry_node_after(g, a, b);
    gantry_node_after(g, b, a);
    gantry_status status = gantry_graph_check(g, &err);
    ck_assert(status == GANTRY_E_GRAPH || status == GANTRY_E_NOMEM);
    gantry_graph_free(g);
    return status == GANTRY_E_GRAPH;
}

static bool report_unwritten(void)
{
    gantry_error err;
    gantry_graph *g = gantry_graph_new("unwritten");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, SHAPE(4));
    gantry_node_read(g, gantry_graph_work(g, "a"), gantry_all(x));
    gantry_status status = gantry_graph_check(g, &err);
    ck_assert(status == GANTRY_E_GRAPH || status == GANTRY_E_NOMEM);
    gantry_graph_free(g);
    return status == GANTRY_E_GRAPH;
}

START_TEST(mistakes)
{
    assert_survives(report_circle, 10);
    assert_survives(report_unwritten, 10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph_nomem");
    TCase *c = tcase_create("nomem");
    tcase_add_test(c, everything);
    tcase_add_test(c, mistakes);
    suite_add_tcase(s, c);
    return run_suite(s);
}
