/* SPDX-License-Identifier: Apache-2.0 */
/* The error of every building call names the line of the program that called it, and the handles of another graph are
 * errors in every call that takes one. tests/unit/layers/check_building_calls.py holds the list of calls against the
 * header. */
#include "own_kernel.h"
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

static const int64_t shape[] = { 4, 4 };
static const gantry_contents contents = GANTRY_CONTENTS_INIT;

/* The arguments of calls: buffers and nodes of one graph, `g`, or of another. */
typedef struct things {
    gantry_buffer x, y;
    gantry_node n, m, k;
} things;

static gantry_graph *new_graph(things *t)
{
    gantry_graph *g = gantry_graph_new("lines");
    t->x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, shape);
    t->y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, shape);
    gantry_buffer_init_value(g, t->x, 1);
    gantry_buffer_init_value(g, t->y, 1);
    t->n = gantry_graph_work(g, "n");
    t->m = gantry_graph_work(g, "m");
    t->k = gantry_graph_kernel(g, "k", "scale");
    return g;
}

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
CALL(gantry_graph_fuse, (g))
CALL(gantry_graph_buffer, (g, "z", GANTRY_F32, 2, shape))
CALL(gantry_buffer_set_class, (g, t->x, GANTRY_INPUT))
CALL(gantry_buffer_output, (g, t->x))
CALL(gantry_buffer_external, (g, t->x, "gpu0"))
CALL(gantry_buffer_tolerance, (g, t->x, 0, 0))
CALL(gantry_buffer_equal_nan, (g, t->x))
CALL(gantry_buffer_split, (g, t->x, 2))
CALL(gantry_buffer_split_auto, (g, t->x, 2))
CALL(gantry_buffer_tiles, (g, t->x, 2, 2))
CALL(gantry_buffer_tiles_by_axis, (g, t->x, 1, (int64_t[]){ 2 }))
CALL(gantry_buffer_init_value, (g, t->x, 1))
CALL(gantry_buffer_init_uniform, (g, t->x, 1, 0, 1))
CALL(gantry_buffer_init_normal, (g, t->x, 1, 0, 1))
CALL(gantry_buffer_init_iota, (g, t->x))
CALL(gantry_buffer_init_spd, (g, t->x, 1))
CALL(gantry_buffer_init_npy, (g, t->x, "x.npy"))
CALL(gantry_buffer_init_raw, (g, t->x, "x.raw"))
CALL(gantry_buffer_init_with, (g, t->x, &contents))
CALL(gantry_graph_kernel, (g, "k2", "scale"))
CALL(gantry_graph_add_kernel, (g, &own))
CALL(gantry_graph_add_cuda_kernel, (g, &own, &code))
CALL(gantry_graph_map, (g, "y", "y = x + 1"))
CALL(gantry_graph_reduce, (g, "y", "y = sum(x)"))
CALL(gantry_graph_launch, (g, "l", work, NULL))
CALL(gantry_graph_host, (g, "h", work, NULL))
CALL(gantry_graph_copy, (g, "c", REGION, gantry_all(t->y)))
CALL(gantry_graph_fill, (g, "f", REGION, 1))
CALL(gantry_graph_fill_uniform, (g, "f", REGION, 1, 0, 1))
CALL(gantry_graph_fill_iota, (g, "f", REGION))
CALL(gantry_graph_fill_with, (g, "f", REGION, &contents))
CALL(gantry_graph_collective,
     (g, "b", GANTRY_BROADCAST, (gantry_access)0, 1, (gantry_region[]){ REGION }, 1, (gantry_region[]){ REGION }, 0))
CALL(gantry_graph_work, (g, "w"))
CALL(gantry_graph_use, (g, "u", "u.json", NULL))
CALL(gantry_node_arg, (g, t->k, "x", REGION))
CALL(gantry_node_arg_as, (g, t->k, "x", REGION, GANTRY_READ))
CALL(gantry_node_scalar, (g, t->k, "a", 2))
CALL(gantry_node_scalar_expr, (g, t->k, "a", "2"))
CALL(gantry_node_scalar_dynamic, (g, t->k, "a", 2))
CALL(gantry_node_read, (g, t->n, REGION))
CALL(gantry_node_write, (g, t->n, REGION))
CALL(gantry_node_readwrite, (g, t->n, REGION))
CALL(gantry_node_reduce, (g, t->n, REGION, GANTRY_SUM))
CALL(gantry_node_after, (g, t->n, t->m))
CALL(gantry_node_algorithm, (g, t->n, "ring"))
CALL(gantry_node_on, (g, t->n, "gpu0"))
CALL(gantry_node_on_ranks, (g, t->n, 1, (const char *const[]){ "gpu0" }))
CALL(gantry_node_with, (g, t->n, t->m))
CALL(gantry_node_apart, (g, t->n, t->m))
CALL(gantry_node_when, (g, t->n, REGION))
CALL(gantry_node_priority, (g, t->n, 3))
CALL(gantry_node_cost, (g, t->n, 1, 1))
CALL(gantry_node_time, (g, t->n, NULL, 1))
CALL(gantry_node_share, (g, t->n, 0.5))
CALL(gantry_node_scratch, (g, t->n, 8))
CALL(gantry_graph_repeat, (g, 2))
CALL(gantry_graph_index, (g, "step"))
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
    ROW(gantry_graph_fuse, 0),
    ROW(gantry_graph_buffer, 0),
    ROW(gantry_buffer_set_class, X),
    ROW(gantry_buffer_output, X),
    ROW(gantry_buffer_external, X),
    ROW(gantry_buffer_tolerance, X),
    ROW(gantry_buffer_equal_nan, X),
    ROW(gantry_buffer_split, X),
    ROW(gantry_buffer_split_auto, X),
    ROW(gantry_buffer_tiles, X),
    ROW(gantry_buffer_tiles_by_axis, X),
    ROW(gantry_buffer_init_value, X),
    ROW(gantry_buffer_init_uniform, X),
    ROW(gantry_buffer_init_normal, X),
    ROW(gantry_buffer_init_iota, X),
    ROW(gantry_buffer_init_spd, X),
    ROW(gantry_buffer_init_npy, X),
    ROW(gantry_buffer_init_raw, X),
    ROW(gantry_buffer_init_with, X),
    ROW(gantry_graph_kernel, 0),
    ROW(gantry_graph_add_kernel, 0),
    ROW(gantry_graph_add_cuda_kernel, 0),
    ROW(gantry_graph_map, 0),
    ROW(gantry_graph_reduce, 0),
    ROW(gantry_graph_launch, 0),
    ROW(gantry_graph_host, 0),
    ROW(gantry_graph_copy, X | Y),
    ROW(gantry_graph_fill, X),
    ROW(gantry_graph_fill_uniform, X),
    ROW(gantry_graph_fill_iota, X),
    ROW(gantry_graph_fill_with, X),
    ROW(gantry_graph_collective, X),
    ROW(gantry_graph_work, 0),
    ROW(gantry_graph_use, 0),
    ROW(gantry_node_arg, K | X),
    ROW(gantry_node_arg_as, K | X),
    ROW(gantry_node_scalar, K),
    ROW(gantry_node_scalar_expr, K),
    ROW(gantry_node_scalar_dynamic, K),
    ROW(gantry_node_read, N | X),
    ROW(gantry_node_write, N | X),
    ROW(gantry_node_readwrite, N | X),
    ROW(gantry_node_reduce, N | X),
    ROW(gantry_node_after, N | M),
    ROW(gantry_node_algorithm, N),
    ROW(gantry_node_on, N),
    ROW(gantry_node_on_ranks, N),
    ROW(gantry_node_with, N | M),
    ROW(gantry_node_apart, N | M),
    ROW(gantry_node_when, N | X),
    ROW(gantry_node_priority, N),
    ROW(gantry_node_cost, N),
    ROW(gantry_node_time, N),
    ROW(gantry_node_share, N),
    ROW(gantry_node_scratch, N),
    ROW(gantry_graph_repeat, 0),
    ROW(gantry_graph_index, IN_LOOP),
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

/* ---- handles of another graph ---- */

static things mix(const things *ours, const things *theirs, int which)
{
    things t = *ours;
    t.x = which == X ? theirs->x : t.x;
    t.y = which == Y ? theirs->y : t.y;
    t.n = which == N ? theirs->n : t.n;
    t.m = which == M ? theirs->m : t.m;
    t.k = which == K ? theirs->k : t.k;
    return t;
}

/* The same ids are in both graphs. */
static void expect_refused(const struct call *c, int which)
{
    things ours, theirs;
    gantry_error err = { 0 };
    gantry_graph *g = new_graph(&ours), *other = new_graph(&theirs);
    char expected[200];
    if (c->takes & IN_LOOP)
        gantry_graph_repeat(g, 2);
    things t = mix(&ours, &theirs, which);
    int line = c->call(g, &t);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_INVALID);
    uint32_t id = which == X ? t.x.id : which == Y ? t.y.id : which == N ? t.n.id : which == M ? t.m.id : t.k.id;
    snprintf(expected, sizeof expected,
             "%s %u belongs to another graph, number %u of this program, and graph \"lines\"",
             which & (X | Y) ? "buffer" : "node", id, theirs.x.graph);
    ck_assert_msg(!strncmp(err.text, expected, strlen(expected)), "%s: %s", c->name, err.text);
    expect_place(c, &err, line);
    gantry_graph_free(other);
    gantry_graph_free(g);
}

START_TEST(handles_of_another_graph_are_refused)
{
    const struct call *c = &calls[_i];
    for (int which = X; which <= K; which *= 2)
        if (c->takes & which)
            expect_refused(c, which);
}
END_TEST

/* A handle without a graph is any graph's: programs count through nodes and buffers. */
START_TEST(handles_made_from_ids_are_taken)
{
    things t;
    gantry_error err = { 0 };
    gantry_graph *g = new_graph(&t), *other = new_graph(&t);
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    ck_assert_str_eq(gantry_graph_node_id(g, (gantry_node){ .id = 1 }), "m");
    ck_assert_int_eq(gantry_graph_buffer_info(g, (gantry_buffer){ .id = 1 }, &info, &err), GANTRY_OK);
    ck_assert_str_eq(info.name, "y");
    ck_assert_ptr_null(gantry_graph_node_id(g, t.m));
    ck_assert_str_eq(gantry_graph_node_id(other, t.m), "m");
    ck_assert_int_eq(gantry_graph_buffer_info(g, t.y, &info, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "buffer 1 belongs to another graph, number ") != NULL, "%s", err.text);
    ck_assert_uint_eq(gantry_graph_find_buffer(other, "y").graph, t.y.graph);
    ck_assert_uint_eq(gantry_graph_find_node(other, "m").graph, t.m.graph);
    ck_assert_uint_ne(gantry_graph_find_node(g, "m").graph, t.m.graph);
    ck_assert_uint_eq(gantry_graph_find_node(g, "none").id, GANTRY_NONE);
    gantry_graph_free(other);
    gantry_graph_free(g);
}
END_TEST

/* A graph that was freed is another one, even if a new one is at its address. */
START_TEST(handles_of_a_freed_graph_are_refused)
{
    things old, t;
    gantry_error err = { 0 };
    gantry_graph_free(new_graph(&old));
    gantry_graph *g = new_graph(&t);
    gantry_node_on(g, old.n, "gpu0");
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, "belongs to another graph") != NULL, "%s", err.text);
    gantry_graph_free(g);
}
END_TEST

/* ---- the same in schedules and runs ---- */

typedef struct line {
    gantry_graph *g;
    gantry_buffer x, y;
    gantry_node n;
} line;

static line new_line(void)
{
    line l = { .g = gantry_graph_new("line") };
    l.x = gantry_graph_buffer(l.g, "x", GANTRY_F32, 1, (const int64_t[]){ 4 });
    l.y = gantry_graph_buffer(l.g, "y", GANTRY_F32, 1, (const int64_t[]){ 4 });
    gantry_buffer_set_class(l.g, l.x, GANTRY_INPUT);
    gantry_buffer_output(l.g, l.y);
    l.n = gantry_graph_kernel(l.g, "n", "scale");
    gantry_node_scalar_dynamic(l.g, l.n, "a", 2);
    gantry_node_arg(l.g, l.n, "x", gantry_all(l.x));
    gantry_node_arg(l.g, l.n, "y", gantry_all(l.y));
    return l;
}

#define MUST(call) ck_assert_msg((call) == GANTRY_OK, "%s", err.text)
#define REFUSED(call, text_)                                                                                           \
    do {                                                                                                               \
        err = (gantry_error){ 0 };                                                                                     \
        ck_assert_int_eq((call), GANTRY_E_INVALID);                                                                    \
        ck_assert_msg(strstr(err.text, text_ " belongs to another graph, number ") != NULL, "%s", err.text);           \
    } while (0)

static void expect_run_refuses(gantry_run *run, const line *l, const line *other)
{
    gantry_error err = { 0 };
    float x[4] = { 1, 2, 3, 4 }, y[4];
    const void *host;
    uint64_t bytes, ticket, hash;
    REFUSED(gantry_run_bind(run, other->x, x, sizeof x, &err), "buffer 0");
    REFUSED(gantry_run_bind_output(run, other->y, y, sizeof y, &err), "buffer 1");
    REFUSED(gantry_run_bind_file(run, other->x, "x.npy", &err), "buffer 0");
    REFUSED(gantry_run_set_scalar(run, other->n, "a", 3, &err), "node 0");
    MUST(gantry_run_bind(run, l->x, x, sizeof x, &err));
    MUST(gantry_run_set_scalar(run, l->n, "a", 3, &err));
    MUST(gantry_run_start(run, &ticket, &err));
    MUST(gantry_run_wait(run, ticket, &err));
    REFUSED(gantry_run_output(run, other->y, &host, &bytes, &err), "buffer 1");
    REFUSED(gantry_run_save(run, other->y, "y.npy", &err), "buffer 1");
    REFUSED(gantry_run_hash(run, other->y, &hash, &err), "buffer 1");
    MUST(gantry_run_output(run, l->y, &host, &bytes, &err));
    ck_assert(((const float *)host)[3] == 12);
}

START_TEST(schedules_and_runs_refuse_them)
{
    gantry_error err = { 0 };
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_run *run = NULL;
    char *text = NULL;
    size_t length;
    line l = new_line(), other = new_line();
    MUST(gantry_machine_virtual(&m, 1, &err));
    MUST(gantry_schedule_new(&s, l.g, m, NULL, &err));
    ck_assert_int_eq(gantry_schedule_device_of(s, l.n), 0);
    ck_assert_int_eq(gantry_schedule_device_of(s, other.n), -1);
    REFUSED(gantry_schedule_explain(s, other.n, &text, &length, &err), "node 0");
    MUST(gantry_schedule_explain(s, l.n, &text, &length, &err));
    MUST(gantry_run_new(&run, s, NULL, &err));
    expect_run_refuses(run, &l, &other);
    gantry_free(text);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(other.g);
    gantry_graph_free(l.g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lines");
    TCase *t = tcase_create("lines");
    tcase_add_loop_test(t, mistakes_have_the_line_of_the_call, 0, CALLS);
    tcase_add_loop_test(t, handles_of_another_graph_are_refused, 0, CALLS);
    tcase_add_test(t, handles_made_from_ids_are_taken);
    tcase_add_test(t, handles_of_a_freed_graph_are_refused);
    tcase_add_test(t, schedules_and_runs_refuse_them);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
