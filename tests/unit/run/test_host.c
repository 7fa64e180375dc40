/* SPDX-License-Identifier: Apache-2.0 */
/* The front and the host back end on schedules made by hand. */
#include "build.h"
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 64 };

/* ---- kernels: f64 vectors, arguments in the order of adding ---- */

static double *data_of(const gantry_launch *l, int i)
{
    return l->arg[i].data;
}
static int64_t rows_of(const gantry_launch *l, int i)
{
    return l->arg[i].rows;
}

/* y = 2 x + 1 */
static gantry_status affine(const gantry_launch *l)
{
    for (int64_t i = 0; i < rows_of(l, 0); i++)
        data_of(l, 1)[i] = 2 * data_of(l, 0)[i] + 1;
    return GANTRY_OK;
}

static gantry_status increment(const gantry_launch *l)
{
    for (int64_t i = 0; i < rows_of(l, 0); i++)
        data_of(l, 0)[i] += 1;
    return GANTRY_OK;
}

typedef struct trouble {
    atomic_int calls;
    int fail_at; /* call number */
    int32_t word;
    gantry_status status;
    int sleep_ms;
} trouble;

static gantry_status troubled(const gantry_launch *l)
{
    trouble *t = l->user;
    int call = ++t->calls;
    if (call == t->fail_at && t->sleep_ms)
        nanosleep(&(struct timespec){ t->sleep_ms / 1000, t->sleep_ms % 1000 * 1000000L }, NULL);
    if (call == t->fail_at) {
        *l->status = t->word;
        return t->status;
    }
    return increment(l);
}

/* ---- pieces ---- */

static gantry_buffer vector(gantry_graph *g, const char *name, int64_t n)
{
    return gantry_graph_buffer(g, name, GANTRY_F64, 1, &n);
}

typedef struct simple {
    gantry_graph *g;
    gantry_schedule *s;
    gantry_buffer x, y;
} simple;

/* y = affine(x) in two halves on two devices, each with its own copy in and out; the second half waits by events. */
static simple make_simple(void)
{
    simple c = { .g = gantry_graph_new("simple") };
    c.x = vector(c.g, "x", N);
    c.y = vector(c.g, "y", N);
    gantry_buffer_set_class(c.g, c.x, GANTRY_INPUT);
    gantry_buffer_output(c.g, c.y);
    gantry_buffer_split(c.g, c.x, 2);
    gantry_buffer_split(c.g, c.y, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_launch(c.g, "affine", affine, NULL);
        gantry_node_read(c.g, n, gantry_part(c.x, i));
        gantry_node_write(c.g, n, gantry_part(c.y, i));
    }
    c.s = build_schedule(c.g, 2);
    uint32_t in = build_input(c.s, c.x.id), out = build_output(c.s, c.y.id);
    for (uint32_t d = 0; d < 2; d++) {
        int64_t first = d * N / 2, last = first + N / 2;
        uint32_t copies = build_lane(c.s, d, GY_LANE_COPY);
        uint32_t xs = build_instance(c.s, c.x.id, d + 1, first, last);
        uint32_t ys = build_instance(c.s, c.y.id, d + 1, first, last);
        uint32_t up = build_copy(c.s, copies, in, xs);
        uint32_t work = build_op(c.s, GY_OP_LAUNCH, d, d);
        build_use_all(c.s, xs, GANTRY_READ);
        build_use_all(c.s, ys, GANTRY_WRITE);
        uint32_t down = build_op(c.s, GY_OP_COPY, GY_NONE, 1 - d); /* by the other device: waits across threads */
        build_use(c.s, ys, GANTRY_READ, first, last);
        build_use(c.s, out, GANTRY_WRITE, first, last);
        build_event(c.s, up, work, 0);
        build_event(c.s, work, down, 0);
    }
    return c;
}

static void free_simple(simple c)
{
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}

static void expect_affine(const double *x, const double *y)
{
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(y[i], 2 * x[i] + 1);
}

START_TEST(two_devices_with_copies_and_events)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    double x[N], y[N] = { 0 };
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    for (int start = 0; start < 2000; start++) {
        for (int i = 0; i < N; i++)
            x[i] = i + start;
        MUST(run_once(run, MUST_ERR));
        const void *host = NULL;
        uint64_t bytes = 0;
        MUST(gantry_run_output(run, c.y, &host, &bytes, MUST_ERR));
        ck_assert_uint_eq(bytes, sizeof y);
        if (start % 100 == 0)
            expect_affine(x, host);
        ck_assert_double_eq(((const double *)host)[N - 1], 2 * x[N - 1] + 1);
    }
    MUST(gantry_run_bind_output(run, c.y, y, sizeof y, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    expect_affine(x, y);
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "host");
    ck_assert_uint_eq(info.starts, 2001);
    ck_assert(info.last_us > 0);
    gantry_run_free(run);
    free_simple(c);
}
END_TEST

static void fail_with(gantry_status got, gantry_status expected, const gantry_error *err, const char *text)
{
    ck_assert_str_eq(err->text, text);
    ck_assert_int_eq(got, expected);
    ck_assert_int_eq(err->status, expected);
}

START_TEST(binding_mistakes_are_told)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    double x[N] = { 0 };
    uint64_t ticket = 99, hash;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    fail_with(gantry_run_start(run, &ticket, &err), GANTRY_E_INVALID, &err,
              "input buffer \"x\" is not bound and has no init, so a start has nothing to begin with; bind it "
              "(gantry_run_bind, --input x=FILE, in Python x=array) or give it an init");
    ck_assert_uint_eq(ticket, 99);
    gantry_error before = { 0 }; /* the same, without a run */
    fail_with(gantry_graph_check_inputs(c.g, NULL, 0, &before), GANTRY_E_INVALID, &before, err.text);
    fail_with(gantry_graph_check_inputs(c.g, (const char *const[]){ "xx=x.npy", "x" }, 2, &before), GANTRY_E_INVALID,
              &before, err.text);
    fail_with(
        gantry_graph_check_inputs(c.g, (const char *const[]){ "y=y.npy" }, 1, &before), GANTRY_E_INVALID, &before,
        "buffer \"y\" is an output and takes no contents: gantry_run_bind is for inputs, states and constants; bind "
        "its result with gantry_run_bind_output");
    ck_assert_int_eq(gantry_graph_check_inputs(c.g, (const char *const[]){ "x=x.npy" }, 1, &before), GANTRY_OK);
    fail_with(gantry_run_bind(run, c.x, x, sizeof x - 8, &err), GANTRY_E_INVALID, &err,
              "buffer \"x\" is f64 [64], that is 512 bytes, but 504 bytes were bound");
    fail_with(gantry_run_bind(run, c.x, NULL, sizeof x, &err), GANTRY_E_INVALID, &err,
              "buffer \"x\" is f64 [64] and was bound to no memory (NULL)");
    fail_with(gantry_run_bind(run, (gantry_buffer){ .id = 7 }, x, sizeof x, &err), GANTRY_E_INVALID, &err,
              "no buffer has the id 7; the graph has 2");
    fail_with(gantry_run_bind_output(run, c.x, x, sizeof x, &err), GANTRY_E_INVALID, &err,
              "buffer \"x\" is no output, so its result cannot be bound; mark it with gantry_buffer_output");
    const double constant[N] = { 0 }; /* what gantry_run_bind takes is never written */
    fail_with(
        gantry_run_bind(run, c.y, constant, sizeof constant, &err), GANTRY_E_INVALID, &err,
        "buffer \"y\" is an output and takes no contents: gantry_run_bind is for inputs, states and constants; bind "
        "its result with gantry_run_bind_output");
    MUST(gantry_run_bind(run, c.x, constant, sizeof constant, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    fail_with(
        gantry_run_bind_output(run, c.y, x, sizeof x, &err), GANTRY_E_INVALID, &err,
        "buffer \"y\" was bound to memory that buffer \"x\" is bound to, and one of them is an output; give outputs "
        "memory of their own");
    fail_with(gantry_run_wait(run, 1, &err), GANTRY_E_INVALID, &err, "no start has the ticket 1; the last one is 0");
    fail_with(gantry_run_output(run, c.y, &host, &bytes, &err), GANTRY_E_INVALID, &err,
              "output \"y\" has no contents yet: the last start has not been made; call gantry_run_wait first");
    fail_with(gantry_run_hash(run, c.x, &hash, &err), GANTRY_E_INVALID, &err,
              "buffer \"x\" is no output; mark it with gantry_buffer_output");
    fail_with(gantry_run_bind_file(run, c.y, "y.npy", &err), GANTRY_E_INVALID, &err,
              "buffer \"y\" takes no input, so y.npy cannot be read into it");
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fail_with(gantry_run_set_scalar(run, (gantry_node){ 0 }, "a", 2, &err), GANTRY_E_INVALID, &err,
              "gantry_run_set_scalar while start 1 is in flight; wait for it first");
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR)); /* is for the starts to come */
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR)); /* again is fine */
    gantry_run_free(run);
    gantry_run_free(NULL);
    free_simple(c);
}
END_TEST

/* Contents are bound, before the first start and between two, and stay as they are; the time is the schedule's. */
START_TEST(sim_moves_nothing)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    double x[2][N] = { 0 }, y[N];
    uint64_t ticket = 0;
    for (int i = 0; i < N; i++)
        y[i] = i;
    c.s->makespan = 7 * GY_TICKS_PER_US;
    options.backend = "sim";
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(gantry_run_bind_output(run, c.y, y, sizeof y, MUST_ERR));
    for (uint64_t n = 1; n <= 2; n++) {
        MUST(gantry_run_bind(run, c.x, x[n - 1], sizeof x[0], MUST_ERR));
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        MUST(gantry_run_get_info(run, &info, MUST_ERR));
        ck_assert_double_eq(info.last_us, 7);
        ck_assert_uint_eq(info.starts, n);
    }
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(y[i], i);
    gantry_run_free(run);
    free_simple(c);
}
END_TEST

START_TEST(new_refuses_what_cannot_run)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    fail_with(gantry_run_new(&run, NULL, NULL, &err), GANTRY_E_INVALID, &err,
              "gantry_run_new was called with NULL for `schedule`; pass what its header asks for");
    simple c = make_simple();
    gantry_graph *keep = c.s->graph;
    c.s->graph = NULL;
    fail_with(gantry_run_new(&run, c.s, NULL, &err), GANTRY_E_INVALID, &err,
              "the schedule of graph \"hand\" comes from a file and has no graph to run; attach it with "
              "gantry_schedule_attach");
    c.s->graph = keep;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "hots";
    fail_with(gantry_run_new(&run, c.s, &options, &err), GANTRY_E_INVALID, &err,
              "no back end \"hots\" (did you mean \"host\"?)");
    options.backend = "quantum";
    fail_with(gantry_run_new(&run, c.s, &options, &err), GANTRY_E_INVALID, &err,
              "no back end \"quantum\"; there are auto, cuda, host, sim");
    options.backend = "sim";
    options.check = 1;
    fail_with(gantry_run_new(&run, c.s, &options, &err), GANTRY_E_UNSUPPORTED, &err,
              "checking mode is not there on back end \"sim\"; use \"host\"");
    ck_assert_ptr_null(run);
    ck_assert_str_eq(gantry_backend_name(0), "cuda");
    ck_assert_str_eq(gantry_backend_name(1), "host");
    ck_assert_str_eq(gantry_backend_name(2), "sim");
    ck_assert_ptr_null(gantry_backend_name(3));
    ck_assert_ptr_null(gantry_backend_summary(3));
    free_simple(c);
}
END_TEST

START_TEST(work_is_simulated_not_run)
{
    gantry_graph *g = gantry_graph_new("work");
    gantry_buffer y = vector(g, "y", N);
    gantry_node n = gantry_graph_work(g, "w");
    gantry_node_write(g, n, gantry_all(y));
    gantry_schedule *s = build_schedule(g, 1);
    build_op(s, GY_OP_LAUNCH, n.id, 0);
    build_use_all(s, build_instance(s, y.id, 1, 0, N), GANTRY_WRITE);
    s->makespan = 7 * GY_TICKS_PER_US;
    s->ops.at[0].end = s->makespan;
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    fail_with(
        gantry_run_new(&run, s, NULL, &err), GANTRY_E_UNSUPPORTED, &err,
        "node \"w\" is \"work\", that is only a cost: it can be scheduled and simulated, not run; give it a kernel, "
        "or use the back end \"sim\"");
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "sim";
    options.record_trace = 1;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "sim");
    ck_assert_double_eq(info.predicted_us, 7);
    ck_assert_double_eq(info.last_us, 7);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* One device, one node on a state: y += 1 in place at every start, and fetched. */
typedef struct counter {
    gantry_graph *g;
    gantry_schedule *s;
    gantry_buffer y;
} counter;

static counter make_counter(gantry_kernel_fn function, void *user)
{
    counter c = { .g = gantry_graph_new("counter") };
    c.y = vector(c.g, "y", N);
    gantry_buffer_set_class(c.g, c.y, GANTRY_STATE);
    gantry_buffer_init_value(c.g, c.y, 10);
    gantry_buffer_output(c.g, c.y);
    gantry_node n = gantry_graph_launch(c.g, "count", function, user);
    gantry_node_readwrite(c.g, n, gantry_all(c.y));
    c.s = build_schedule(c.g, 1);
    uint32_t home = build_persist(c.s, c.y.id, 1);
    build_op(c.s, GY_OP_LAUNCH, n.id, 0);
    build_use_all(c.s, home, GANTRY_READWRITE);
    build_copy(c.s, 0, home, build_output(c.s, c.y.id));
    return c;
}

static double counted(gantry_run *run, gantry_buffer y)
{
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_output(run, y, &host, &bytes, MUST_ERR));
    return ((const double *)host)[N - 1];
}

START_TEST(state_persists_and_can_be_bound)
{
    counter c = make_counter(increment, NULL);
    gantry_run *run = NULL;
    double fresh[N] = { 0 };
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    for (int i = 1; i <= 5; i++) {
        MUST(run_once(run, MUST_ERR));
        ck_assert_double_eq(counted(run, c.y), 10 + i);
    }
    MUST(gantry_run_bind(run, c.y, fresh, sizeof fresh, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, c.y), 1);
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, c.y), 2);
    ck_assert_double_eq(fresh[0], 0);
    gantry_run_free(run);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(a_failing_kernel_ends_a_start_and_the_next_begins_anew)
{
    trouble t = { .fail_at = 3, .word = 5 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    uint64_t ticket, later;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, c.y), 12);
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fail_with(gantry_run_wait(run, ticket, &err), GANTRY_E_KERNEL, &err,
              "node \"count\" failed on device \"dev0\": its kernel left 5 in the status word");
    ck_assert_int_eq(err.device, 0);
    ck_assert_int_eq(err.native, 5);
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_KERNEL); /* it stays so */
    const void *host;
    uint64_t bytes;
    fail_with(gantry_run_output(run, c.y, &host, &bytes, &err), GANTRY_E_INVALID, &err,
              "output \"y\" has no contents yet: the last start failed; call gantry_run_wait first");
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, c.y), 11); /* the state began again */

    t.fail_at = t.calls + 1;
    t.word = 0;
    t.status = GANTRY_E_INVALID;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fail_with(gantry_run_start(run, &later, &err), GANTRY_E_KERNEL, &err, /* an earlier failure */
              "node \"count\" failed on device \"dev0\": its function returned GANTRY_E_INVALID (-2)");
    MUST(run_once(run, MUST_ERR));
    gantry_run_free(run);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

START_TEST(a_failure_lets_other_devices_drain)
{
    trouble t = { .fail_at = 1, .word = 1 };
    gantry_graph *g = gantry_graph_new("drain");
    gantry_buffer y = vector(g, "y", N), z = vector(g, "z", N);
    gantry_node a = gantry_graph_launch(g, "a", troubled, &t);
    gantry_node_readwrite(g, a, gantry_all(y));
    gantry_node b = gantry_graph_launch(g, "b", affine, NULL);
    gantry_node_read(g, b, gantry_all(y));
    gantry_node_write(g, b, gantry_all(z));
    gantry_buffer_init_value(g, y, 1);
    gantry_buffer_set_class(g, y, GANTRY_STATE);
    gantry_schedule *s = build_schedule(g, 3);
    uint32_t ys = build_persist(s, y.id, 1), there = build_instance(s, y.id, 2, 0, N);
    uint32_t zs = build_instance(s, z.id, 2, 0, N);
    uint32_t op = build_op(s, GY_OP_LAUNCH, a.id, 0);
    build_use_all(s, ys, GANTRY_READWRITE);
    uint32_t copy = build_copy(s, 1, ys, there);
    build_op(s, GY_OP_LAUNCH, b.id, 1);
    build_use_all(s, there, GANTRY_READ);
    build_use_all(s, zs, GANTRY_WRITE);
    build_collective(s, GANTRY_BROADCAST, 0, GY_NONE, 3);
    build_use_all(s, zs, GANTRY_READ);
    build_use_all(s, build_instance(s, z.id, 1, 0, N), GANTRY_WRITE);
    build_use_all(s, build_instance(s, z.id, 3, 0, N), GANTRY_WRITE);
    build_event(s, op, copy, 0);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    for (int i = 0; i < 300; i++) {
        t.fail_at = i % 3 == 0 ? t.calls + 1 : 0;
        ck_assert_int_eq(run_once(run, &err), i % 3 == 0 ? GANTRY_E_KERNEL : GANTRY_OK);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(a_deadline_names_the_op)
{
    trouble t = { .fail_at = 2, .sleep_ms = 500 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.deadline_us = 200000;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    fail_with(run_once(run, &err), GANTRY_E_TIMEOUT, &err,
              "the deadline of 200.000 ms passed: op 0, \"count\", on device \"dev0\" had not returned");
    MUST(run_once(run, MUST_ERR)); /* by then it has */
    gantry_run_free(run);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

/* Nothing moves for as long as the caller allows, whatever it is that does not. */
START_TEST(a_timeout_names_the_op_and_the_remedy)
{
    trouble t = { .fail_at = 2, .sleep_ms = 700 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.timeout_us = 250000;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    ck_assert_int_eq(run_once(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strncmp(err.text, "no progress for 0.", 18) == 0 &&
                      strstr(err.text, " s, where 0.25 s are allowed: op 0, \"count\", on device \"dev0\" had not "
                                       "returned; allow more with timeout_us of the options of the run (gantry run "
                                       "--timeout SECONDS)"),
                  "%s", err.text);
    ck_assert_int_eq(err.device, 0);
    gantry_run_free(run);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

/* Longer than what is watched may stand still: a function is not. */
START_TEST(a_slow_function_is_waited_for)
{
    trouble t = { .fail_at = 1, .sleep_ms = 10800 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    gantry_run_free(run);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

/* It never comes back: the run is given up, and freeing it does not hang. */
START_TEST(what_hangs_is_left_behind)
{
    static trouble t = { .fail_at = 1, .sleep_ms = 5000 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    uint64_t ticket;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.deadline_us = 10000;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    ck_assert_int_eq(run_once(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_TIMEOUT);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    gantry_run_free(run);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_lt(end.tv_sec - begin.tv_sec, 3);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

/* Two ops that wait for each other: no checker would let that pass, but nothing hangs. */
START_TEST(ops_that_wait_for_each_other_are_told)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    double x[N] = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.deadline_us = 30000;
    build_event(c.s, 4, 1, 0); /* the second launch before the first ... */
    build_event(c.s, 1, 4, 0); /* ... and the other way round */
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    for (int i = 0; i < 2; i++) {
        fail_with(
            run_once(run, &err), GANTRY_E_TIMEOUT, &err,
            "the deadline of 30.000 ms passed: op 1, \"affine\", on device \"dev0\" was still waiting for others");
    }
    gantry_run_free(run);
    options.deadline_us = 0;
    options.timeout_us = 100000;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    ck_assert_int_eq(run_once(run, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "0.1 s are allowed: op 1, \"affine\", on device \"dev0\" was still waiting for "
                                   "others; allow more with "),
                  "%s", err.text);
    gantry_run_free(run);
    options.check = 1;
    options.timeout_us = 0;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    fail_with(run_once(run, &err), GANTRY_E_SCHEDULE, &err, "4 ops of the schedule wait for each other for ever");
    gantry_run_free(run);
    free_simple(c);
}
END_TEST

START_TEST(a_run_may_be_freed_while_it_runs)
{
    trouble t = { .fail_at = 1, .sleep_ms = 20 };
    counter c = make_counter(troubled, &t);
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    gantry_run_free(run);
    ck_assert_int_eq(t.calls, 1);
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}
END_TEST

/* ---- starts in flight ---- */

/* Device 0 makes y from x, device 1 makes z from a copy of y; two starts overlap. The copy of start i may only
 * overwrite what start i - 1 has read: a row with distance 1. */
START_TEST(starts_overlap_as_the_distances_say)
{
    gantry_graph *g = gantry_graph_new("pipeline");
    gantry_buffer y = vector(g, "y", N), z = vector(g, "z", N);
    gantry_buffer_set_class(g, y, GANTRY_STATE);
    gantry_buffer_init_value(g, y, 0);
    gantry_buffer_set_class(g, z, GANTRY_STATE);
    gantry_buffer_init_value(g, z, 0);
    gantry_buffer_output(g, z);
    gantry_node a = gantry_graph_launch(g, "a", increment, NULL);
    gantry_node_readwrite(g, a, gantry_all(y));
    gantry_node b = gantry_graph_launch(g, "b", affine, NULL);
    gantry_node_read(g, b, gantry_all(y));
    gantry_node_write(g, b, gantry_all(z));
    gantry_schedule *s = build_schedule(g, 2);
    s->in_flight = 2;
    uint32_t home = build_persist(s, y.id, 1), there = build_instance(s, y.id, 2, 0, N);
    uint32_t zs = build_persist(s, z.id, 2), out = build_output(s, z.id);
    uint32_t make = build_op(s, GY_OP_LAUNCH, a.id, 0);
    build_use_all(s, home, GANTRY_READWRITE);
    uint32_t copy = build_copy(s, 0, home, there);
    uint32_t use = build_op(s, GY_OP_LAUNCH, b.id, 1);
    build_use_all(s, there, GANTRY_READ);
    build_use_all(s, zs, GANTRY_WRITE);
    build_copy(s, 1, zs, out);
    build_event(s, copy, use, 0);
    build_event(s, use, copy, 1);
    (void)make;
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    for (int round = 1; round <= 20; round++) {
        for (int i = 0; i < 50; i++)
            MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        MUST(gantry_run_output(run, z, &host, &bytes, MUST_ERR));
        ck_assert_double_eq(((const double *)host)[0], 2 * 50 * round + 1);
        ck_assert_double_eq(((const double *)host)[N - 1], 2 * 50 * round + 1);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Without the event between them, the copy and the launch race: the tool that watches the suite must be able to see it.
 * 66 is how a program ends that ThreadSanitizer has something to say about. */
#if defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif

#ifdef WATCHED
START_TEST(a_missing_event_is_a_race)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    double x[N] = { 0 };
    c.s->sync.count = 1; /* of four: work -> down is gone on both devices */
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    for (int i = 0; i < 200; i++)
        MUST(run_once(run, MUST_ERR));
    gantry_run_free(run);
    free_simple(c);
}
END_TEST
#endif

/* ---- traces, hashes, files ---- */

START_TEST(a_trace_is_json_with_every_op_twice)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    double x[N] = { 0 };
    char *text = NULL;
    size_t length = 0;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    fail_with(gantry_run_trace(run, &text, &length, &err), GANTRY_E_INVALID, &err,
              "the run keeps no times; set record_trace in its options");
    gantry_run_free(run);
    options.record_trace = 1;
    MUST(gantry_run_new(&run, c.s, &options, MUST_ERR));
    ck_assert_int_eq(gantry_run_trace(run, &text, &length, &err), GANTRY_E_INVALID);
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_trace(run, &text, &length, MUST_ERR));
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(root);
    const json_t *events = json_object_get(root, "traceEvents");
    size_t spans[2] = { 0 };
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *e = json_array_get(events, i);
        if (strcmp(json_string_value(json_object_get(e, "ph")), "X") == 0) {
            spans[json_integer_value(json_object_get(e, "pid"))]++;
            ck_assert(json_number_value(json_object_get(e, "dur")) >= 0);
        }
    }
    ck_assert_uint_eq(spans[0], 6);
    ck_assert_uint_eq(spans[1], 6);
    json_decref(root);
    gantry_free(text);
    gantry_run_free(run);
    free_simple(c);
}
END_TEST

static void make_folder(char *folder)
{
    strcpy(folder, "/tmp/gantry-run-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

START_TEST(outputs_are_saved_and_read_back)
{
    simple c = make_simple();
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    char folder[64], npy[96], raw[96], expected[256];
    double x[N], again[N];
    make_folder(folder);
    snprintf(npy, sizeof npy, "%s/y.npy", folder);
    snprintf(raw, sizeof raw, "%s/y.raw", folder);
    for (int i = 0; i < N; i++)
        x[i] = i;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(gantry_run_bind(run, c.x, x, sizeof x, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    gantry_files *files = NULL;
    MUST(gantry_files_new(&files, MUST_ERR));
    ck_assert_int_eq(gantry_run_save_with(run, c.y, NULL, npy, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_run_save_with(run, c.y, files, NULL, &err), GANTRY_E_INVALID);
    MUST(gantry_run_save_with(run, c.y, files, npy, MUST_ERR));
    ck_assert(access(npy, F_OK) != 0);
    MUST(gantry_files_commit(files, MUST_ERR));
    gantry_files_free(files);
    MUST(gantry_run_save(run, c.y, raw, MUST_ERR));
    FILE *file = fopen(raw, "rb");
    ck_assert_uint_eq(fread(again, 8, N, file), N);
    fclose(file);
    expect_affine(x, again);
    MUST(gantry_run_bind_file(run, c.x, npy, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    const void *host = NULL;
    uint64_t bytes = 0, first = 0, second = 0;
    MUST(gantry_run_output(run, c.y, &host, &bytes, MUST_ERR));
    expect_affine(again, host);
    MUST(gantry_run_hash(run, c.y, &first, MUST_ERR));
    MUST(gantry_run_bind_file(run, c.x, raw, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_hash(run, c.y, &second, MUST_ERR));
    ck_assert_uint_eq(first, second);
    ck_assert_int_eq(gantry_run_bind_file(run, c.x, "/nowhere/x.npy", &err), GANTRY_E_IO);
    file = fopen(raw, "wb");
    fwrite(x, 8, 3, file);
    fclose(file);
    snprintf(expected, sizeof expected,
             "%s has 24 bytes of data, but buffer \"x\" has 512; it has all elements of the buffer, in C order, and "
             "nothing else: write it anew",
             raw);
    fail_with(gantry_run_bind_file(run, c.x, raw, &err), GANTRY_E_IO, &err, expected);
    gantry_run_free(run);
    free_simple(c);
    ck_assert(remove(npy) == 0 && remove(raw) == 0 && remove(folder) == 0); /* nothing else was left there */
}
END_TEST

/* xxh64 of nothing, seed 0: ef46db3751d8e999 in the specification of xxHash. */
START_TEST(the_hash_is_xxh64)
{
    gantry_graph *g = gantry_graph_new("empty");
    gantry_buffer y = vector(g, "y", 0);
    gantry_buffer_init_value(g, y, 0);
    gantry_buffer_output(g, y);
    gantry_schedule *s = build_schedule(g, 1);
    build_copy(s, 0, build_input(s, y.id), build_output(s, y.id));
    gantry_run *run = NULL;
    uint64_t hash = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_hash(run, y, &hash, MUST_ERR));
    ck_assert_uint_eq(hash, UINT64_C(0xef46db3751d8e999));
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

static gantry_status add_tile(const gantry_launch *l)
{
    double *tile = l->arg[0].data;
    for (int64_t i = 0; i < l->arg[0].shape[0] * l->arg[0].shape[1]; i++)
        tile[i] += 100 * (double)(l->arg[0].tile[0] * 2 + l->arg[0].tile[1] + 1);
    return GANTRY_OK;
}

/* 4 x 6 in 2 x 2 tiles, bound in C order, every tile gets its own number added. */
START_TEST(tiled_buffers_are_bound_in_c_order)
{
    gantry_graph *g = gantry_graph_new("tiles");
    gantry_buffer a = gantry_graph_buffer(g, "a", GANTRY_F64, 2, ((int64_t[]){ 4, 6 }));
    gantry_buffer_tiles(g, a, 2, 2);
    gantry_buffer_set_class(g, a, GANTRY_INPUT);
    gantry_buffer_output(g, a);
    for (int64_t i = 0; i < 4; i++) {
        gantry_node n = gantry_graph_launch(g, "add", add_tile, NULL);
        gantry_node_readwrite(g, n, gantry_tile(a, i / 2, i % 2));
    }
    gantry_schedule *s = build_schedule(g, 1);
    uint32_t whole = build_instance(s, a.id, 1, 0, 4);
    build_copy(s, 0, build_input(s, a.id), whole);
    for (uint32_t i = 0; i < 4; i++) {
        build_op(s, GY_OP_LAUNCH, i, 0);
        build_use(s, whole, GANTRY_READWRITE, i, i + 1);
    }
    build_copy(s, 0, whole, build_output(s, a.id));
    double in[24], out[24];
    gantry_run *run = NULL;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(gantry_run_bind(run, a, in, sizeof in, MUST_ERR));
    MUST(gantry_run_bind_output(run, a, out, sizeof out, MUST_ERR));
    for (int start = 0; start < 3; start++) {
        for (int i = 0; i < 24; i++)
            in[i] = i + start; /* may change between starts */
        MUST(run_once(run, MUST_ERR));
        for (int i = 0; i < 24; i++) {
            int tile = i / 6 / 2 * 2 + i % 6 / 3;
            ck_assert_double_eq(out[i], i + start + 100 * (tile + 1));
        }
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(dynamic_scalars_change_between_starts)
{
    gantry_graph *g = gantry_graph_new("scalar");
    gantry_buffer x = vector(g, "x", N), y = vector(g, "y", N);
    gantry_buffer_init_value(g, x, 3);
    gantry_buffer_output(g, y);
    gantry_node n = gantry_graph_kernel(g, "s", "scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_arg(g, n, "y", gantry_all(y));
    gantry_node_scalar_dynamic(g, n, "a", 2);
    gantry_schedule *s = build_schedule(g, 1);
    uint32_t xs = build_instance(s, x.id, 1, 0, N), ys = build_instance(s, y.id, 1, 0, N);
    build_copy(s, 0, build_input(s, x.id), xs);
    build_op(s, GY_OP_LAUNCH, n.id, 0);
    build_use_all(s, xs, GANTRY_READ);
    build_use_all(s, ys, GANTRY_WRITE);
    build_copy(s, 0, ys, build_output(s, y.id));
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, y), 6);
    MUST(gantry_run_set_scalar(run, n, "a", -5, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    ck_assert_double_eq(counted(run, y), -15);
    fail_with(gantry_run_set_scalar(run, n, "b", 1, &err), GANTRY_E_INVALID, &err,
              "node \"s\" has no scalar \"b\"; kernel \"scale\" takes a");
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run host");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, two_devices_with_copies_and_events);
    tcase_add_test(all, binding_mistakes_are_told);
    tcase_add_test(all, sim_moves_nothing);
    tcase_add_test(all, new_refuses_what_cannot_run);
    tcase_add_test(all, work_is_simulated_not_run);
    tcase_add_test(all, state_persists_and_can_be_bound);
    tcase_add_test(all, a_failing_kernel_ends_a_start_and_the_next_begins_anew);
    tcase_add_test(all, a_failure_lets_other_devices_drain);
    tcase_add_test(all, a_deadline_names_the_op);
    tcase_add_test(all, a_timeout_names_the_op_and_the_remedy);
    tcase_add_test(all, a_slow_function_is_waited_for);
    tcase_add_test(all, what_hangs_is_left_behind);
    tcase_add_test(all, ops_that_wait_for_each_other_are_told);
    tcase_add_test(all, a_run_may_be_freed_while_it_runs);
    tcase_add_test(all, starts_overlap_as_the_distances_say);
#ifdef WATCHED
    tcase_add_exit_test(all, a_missing_event_is_a_race, 66);
#endif
    tcase_add_test(all, a_trace_is_json_with_every_op_twice);
    tcase_add_test(all, outputs_are_saved_and_read_back);
    tcase_add_test(all, the_hash_is_xxh64);
    tcase_add_test(all, tiled_buffers_are_bound_in_c_order);
    tcase_add_test(all, dynamic_scalars_change_between_starts);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
