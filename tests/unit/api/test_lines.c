/* SPDX-License-Identifier: Apache-2.0 */
/* The error of every building call names the line of the program that called it. tests/unit/layers/check_building_calls.py holds the list of calls against the
 * header. */
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

static gantry_status work(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}
static const gantry_kernel_arg own_arg = { .name = "x", .access = GANTRY_READ };
static const gantry_kernel own = {
    .struct_size = sizeof own, .name = "own", .arg = &own_arg, .arg_size = sizeof own_arg, .args = 1, .host = work
};
static const gantry_cuda_code code = {
    .struct_size = sizeof code, .image = "// PTX", .bytes = 6, .grid = { "x.rows" }, .block = { "32" }
};
static const int64_t shape[] = { 4, 4 };

/* What calls name: buffers and nodes of one graph, `g`, or of another. */
typedef struct things {
    gantry_buffer x, y;
    gantry_node n, m, k;
} things;

/* Names the line on which the call is written: all of a macro's text is on that of its use. */
#define CALL(name, arguments)                                                                                          \
    static int call_##name(gantry_graph *g, const things *t)                                                           \
    {                                                                                                                  \
        (void)t;                                                                                                       \
        name arguments;                                                                                                \
        return __LINE__;                                                                                               \
    }
#define REGION gantry_all(t->x)

/* clang-format off: a line each */
CALL(gantry_graph_limit, (g, 7))
CALL(gantry_graph_buffer, (g, "z", GANTRY_F32, 2, shape))
CALL(gantry_buffer_set_class, (g, t->x, GANTRY_INPUT))
CALL(gantry_buffer_output, (g, t->x))
CALL(gantry_buffer_external, (g, t->x, "gpu0"))
CALL(gantry_buffer_tolerance, (g, t->x, 0, 0))
CALL(gantry_buffer_equal_nan, (g, t->x))
CALL(gantry_buffer_split, (g, t->x, 2))
CALL(gantry_buffer_split_auto, (g, t->x, 2))
CALL(gantry_buffer_tiles, (g, t->x, 2, 2))
CALL(gantry_buffer_init_value, (g, t->x, 1))
CALL(gantry_buffer_init_uniform, (g, t->x, 1, 0, 1))
CALL(gantry_buffer_init_normal, (g, t->x, 1, 0, 1))
CALL(gantry_buffer_init_iota, (g, t->x))
CALL(gantry_buffer_init_spd, (g, t->x, 1))
CALL(gantry_buffer_init_npy, (g, t->x, "x.npy"))
CALL(gantry_buffer_init_raw, (g, t->x, "x.raw"))
CALL(gantry_graph_kernel, (g, "k2", "scale"))
CALL(gantry_graph_add_kernel, (g, &own))
CALL(gantry_graph_add_cuda_kernel, (g, &own, &code))
CALL(gantry_graph_launch, (g, "l", work, NULL))
CALL(gantry_graph_host, (g, "h", work, NULL))
CALL(gantry_graph_copy, (g, "c", REGION, gantry_all(t->y)))
CALL(gantry_graph_fill, (g, "f", REGION, 1))
CALL(gantry_graph_fill_uniform, (g, "f", REGION, 1, 0, 1))
CALL(gantry_graph_fill_iota, (g, "f", REGION))
CALL(gantry_graph_collective,
     (g, "b", GANTRY_BROADCAST, (gantry_access)0, 1, (gantry_region[]){ REGION }, 1, (gantry_region[]){ REGION }, 0))
CALL(gantry_graph_work, (g, "w"))
CALL(gantry_node_arg, (g, t->k, "x", REGION))
CALL(gantry_node_arg_as, (g, t->k, "x", REGION, GANTRY_READ))
CALL(gantry_node_scalar, (g, t->k, "a", 2))
CALL(gantry_node_scalar_dynamic, (g, t->k, "a", 2))
CALL(gantry_node_read, (g, t->n, REGION))
CALL(gantry_node_write, (g, t->n, REGION))
CALL(gantry_node_readwrite, (g, t->n, REGION))
CALL(gantry_node_reduce, (g, t->n, REGION, GANTRY_SUM))
CALL(gantry_node_after, (g, t->n, t->m))
CALL(gantry_node_on, (g, t->n, "gpu0"))
CALL(gantry_node_with, (g, t->n, t->m))
CALL(gantry_node_apart, (g, t->n, t->m))
CALL(gantry_node_priority, (g, t->n, 3))
CALL(gantry_node_cost, (g, t->n, 1, 1))
CALL(gantry_node_time, (g, t->n, NULL, 1))
CALL(gantry_node_share, (g, t->n, 0.5))
CALL(gantry_node_scratch, (g, t->n, 8))
CALL(gantry_graph_repeat, (g, 2))
CALL(gantry_graph_carry, (g, t->x, t->y))
CALL(gantry_graph_until, (g, t->x, 1))
CALL(gantry_graph_repeat_end, (g))
/* clang-format on */

/* Which handles a call takes: the fields of `things`. */
enum { X = 1, Y = 2, N = 4, M = 8, K = 16, IN_LOOP = 32 };

#define ROW(name, takes)                                                                                               \
    {                                                                                                                  \
#name, call_##name, takes                                                                                      \
    }
static const struct call {
    const char *name;
    int (*call)(gantry_graph *g, const things *t);
    int takes;
} calls[] = {
    ROW(gantry_graph_limit, 0),
    ROW(gantry_graph_buffer, 0),
    ROW(gantry_buffer_set_class, X),
    ROW(gantry_buffer_output, X),
    ROW(gantry_buffer_external, X),
    ROW(gantry_buffer_tolerance, X),
    ROW(gantry_buffer_equal_nan, X),
    ROW(gantry_buffer_split, X),
    ROW(gantry_buffer_split_auto, X),
    ROW(gantry_buffer_tiles, X),
    ROW(gantry_buffer_init_value, X),
    ROW(gantry_buffer_init_uniform, X),
    ROW(gantry_buffer_init_normal, X),
    ROW(gantry_buffer_init_iota, X),
    ROW(gantry_buffer_init_spd, X),
    ROW(gantry_buffer_init_npy, X),
    ROW(gantry_buffer_init_raw, X),
    ROW(gantry_graph_kernel, 0),
    ROW(gantry_graph_add_kernel, 0),
    ROW(gantry_graph_add_cuda_kernel, 0),
    ROW(gantry_graph_launch, 0),
    ROW(gantry_graph_host, 0),
    ROW(gantry_graph_copy, X | Y),
    ROW(gantry_graph_fill, X),
    ROW(gantry_graph_fill_uniform, X),
    ROW(gantry_graph_fill_iota, X),
    ROW(gantry_graph_collective, X),
    ROW(gantry_graph_work, 0),
    ROW(gantry_node_arg, K | X),
    ROW(gantry_node_arg_as, K | X),
    ROW(gantry_node_scalar, K),
    ROW(gantry_node_scalar_dynamic, K),
    ROW(gantry_node_read, N | X),
    ROW(gantry_node_write, N | X),
    ROW(gantry_node_readwrite, N | X),
    ROW(gantry_node_reduce, N | X),
    ROW(gantry_node_after, N | M),
    ROW(gantry_node_on, N),
    ROW(gantry_node_with, N | M),
    ROW(gantry_node_apart, N | M),
    ROW(gantry_node_priority, N),
    ROW(gantry_node_cost, N),
    ROW(gantry_node_time, N),
    ROW(gantry_node_share, N),
    ROW(gantry_node_scratch, N),
    ROW(gantry_graph_repeat, 0),
    ROW(gantry_graph_carry, X | Y | IN_LOOP),
    ROW(gantry_graph_until, X | IN_LOOP),
    ROW(gantry_graph_repeat_end, IN_LOOP),
};
enum { CALLS = sizeof calls / sizeof *calls };

static void expect_place(const struct call *c, const gantry_error *err, int line)
{
    const char *slash = strrchr(err->file, '/');
    ck_assert_str_eq(slash ? slash + 1 : err->file, "test_lines.c");
    ck_assert_msg(err->line == line, "%s: the error names line %d and the call is on line %d", c->name, err->line,
                  line);
}

/* Each call is a mistake once the graph is sealed; the lines above it have calls of their own. */
START_TEST(mistakes_have_the_line_of_the_call)
{
    things t;
    gantry_error err = { 0 };
    const struct call *c = &calls[_i];
    gantry_graph *g = gantry_graph_new("sealed");
    t.x = t.y = gantry_graph_buffer(g, "x", GANTRY_F32, 2, shape);
    t.n = t.m = t.k = gantry_graph_work(g, "n");
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    int line = c->call(g, &t);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "the graph was checked and is sealed: build it completely before gantry_graph_check");
    expect_place(c, &err, line);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lines");
    TCase *t = tcase_create("lines");
    tcase_add_loop_test(t, mistakes_have_the_line_of_the_call, 0, CALLS);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
