/* SPDX-License-Identifier: Apache-2.0 */
/* Checking mode: every planted bug is caught, and honest kernels are not accused. */
#include "build.h"
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 40 };

static float *f32(const gantry_launch *l, int i)
{
    return l->arg[i].data;
}

/* Versions of the kernel under test. Arguments: x read, y as declared, N elements each. */
static gantry_status honest(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        f32(l, 1)[i] = 3 * f32(l, 0)[i];
    return GANTRY_OK;
}
static gantry_status honest_sum(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        f32(l, 1)[i] += 3 * f32(l, 0)[i];
    return GANTRY_OK;
}
static gantry_status honest_max(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        f32(l, 1)[i] = f32(l, 0)[i] > f32(l, 1)[i] ? f32(l, 0)[i] : f32(l, 1)[i];
    return GANTRY_OK;
}
static gantry_status honest_prod(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        f32(l, 1)[i] *= f32(l, 0)[i];
    return GANTRY_OK;
}
static gantry_status partial_writer(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        if (i != 17)
            f32(l, 1)[i] = 1;
    return GANTRY_OK;
}
static gantry_status adds_to_what_it_writes(const gantry_launch *l)
{
    for (int i = 0; i < N; i++)
        f32(l, 1)[i] += 3 * f32(l, 0)[i] + 1;
    return GANTRY_OK;
}
static gantry_status assigns(const gantry_launch *l)
{
    return honest(l);
}
static gantry_status assigns_one(const gantry_launch *l)
{
    honest_sum(l);
    f32(l, 1)[N - 1] = 1;
    return GANTRY_OK;
}
static gantry_status is_nan_from_the_identity_only(const gantry_launch *l)
{
    bool identity = f32(l, 1)[3] == 0;
    honest_sum(l);
    f32(l, 1)[3] = identity ? NAN : f32(l, 1)[3];
    return GANTRY_OK;
}
static gantry_status writes_behind(const gantry_launch *l)
{
    honest(l);
    f32(l, 1)[N] = 7;
    return GANTRY_OK;
}
static gantry_status writes_before(const gantry_launch *l)
{
    honest(l);
    f32(l, 1)[-1] = 7;
    return GANTRY_OK;
}
static gantry_status reads_behind(const gantry_launch *l)
{
    honest(l);
    f32(l, 1)[0] += *(volatile float *)&f32(l, 0)[N];
    return GANTRY_OK;
}
static gantry_status writes_its_input(const gantry_launch *l)
{
    honest(l);
    f32(l, 0)[2] = 7;
    return GANTRY_OK;
}

/* Keeps the address of the first launch and uses it in the second. */
typedef struct smuggler {
    float *kept;
    int calls;
} smuggler;
static gantry_status keeps_a_pointer(const gantry_launch *l)
{
    smuggler *s = l->user;
    s->kept = f32(l, 0);
    return honest(l);
}
static gantry_status uses_a_pointer(const gantry_launch *l)
{
    smuggler *s = l->user;
    honest(l);
    f32(l, 1)[0] = s->kept[0];
    return GANTRY_OK;
}
static gantry_status uses_scratch_unset(const gantry_launch *l)
{
    honest(l);
    f32(l, 1)[5] += ((float *)l->scratch)[1];
    return GANTRY_OK;
}
static gantry_status past_scratch(const gantry_launch *l)
{
    honest(l);
    ((volatile char *)l->scratch)[l->scratch_bytes + 4096] = 1;
    return GANTRY_OK;
}
static gantry_status different_every_time(const gantry_launch *l)
{
    smuggler *s = l->user;
    honest(l);
    f32(l, 1)[0] = (float)++s->calls;
    return GANTRY_OK;
}

typedef struct bench {
    gantry_graph *g;
    gantry_schedule *s;
    gantry_buffer x, y;
    uint32_t upload;
} bench;

/* x is uploaded, y begins with a value where it is added to, one launch, y is fetched. */
static bench make_bench(gantry_kernel_fn function, void *user, gantry_access access, int64_t scratch)
{
    bench c = { .g = gantry_graph_new("bench") };
    int64_t n = N;
    c.x = gantry_graph_buffer(c.g, "x", GANTRY_F32, 1, &n);
    c.y = gantry_graph_buffer(c.g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_init_iota(c.g, c.x);
    gantry_buffer_init_value(c.g, c.y, 4);
    gantry_buffer_output(c.g, c.y);
    gantry_node node = gantry_graph_launch(c.g, "k", function, user);
    gantry_node_read(c.g, node, gantry_all(c.x));
    if (access >= GANTRY_SUM)
        gantry_node_reduce(c.g, node, gantry_all(c.y), access);
    else if (access == GANTRY_WRITE)
        gantry_node_write(c.g, node, gantry_all(c.y));
    else
        gantry_node_readwrite(c.g, node, gantry_all(c.y));
    if (scratch)
        gantry_node_scratch(c.g, node, scratch);
    c.s = build_schedule(c.g, 2);
    uint32_t xs = build_instance(c.s, c.x.id, 1, 0, N), ys = build_instance(c.s, c.y.id, 1, 0, N);
    c.upload = build_copy(c.s, 0, build_input(c.s, c.x.id), xs);
    build_copy(c.s, 0, build_input(c.s, c.y.id), ys);
    build_op(c.s, GY_OP_LAUNCH, node.id, 0);
    build_use_all(c.s, xs, GANTRY_READ);
    build_use_all(c.s, ys, access);
    build_copy(c.s, 0, ys, build_output(c.s, c.y.id));
    return c;
}

static void free_bench(bench c)
{
    gantry_schedule_free(c.s);
    gantry_graph_free(c.g);
}

static gantry_run *check_run(gantry_schedule *s, uint64_t seed)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.check = 1;
    options.seed = seed;
    MUST(gantry_run_new(&run, s, &options, MUST_ERR));
    return run;
}

static void expect(bench c, gantry_status status, const char *text)
{
    gantry_run *run = check_run(c.s, 1);
    gantry_error err = { 0 };
    gantry_status got = run_once(run, &err);
    ck_assert_str_eq(err.text, text);
    ck_assert_int_eq(got, status);
    gantry_run_free(run);
    free_bench(c);
}

static void expect_values(bench c, float (*value)(float x))
{
    gantry_run *run = check_run(c.s, 1);
    const void *host = NULL;
    uint64_t bytes = 0;
    for (int start = 0; start < 3; start++) {
        MUST(run_once(run, MUST_ERR));
        MUST(gantry_run_output(run, c.y, &host, &bytes, MUST_ERR));
        for (int i = 0; i < N; i++)
            ck_assert_float_eq(((const float *)host)[i], value((float)i));
    }
    gantry_run_free(run);
    free_bench(c);
}

static float three_x(float x)
{
    return 3 * x;
}
static float four_and_three_x(float x)
{
    return 4 + 3 * x;
}
static float at_least_four(float x)
{
    return x > 4 ? x : 4;
}
static float four_x(float x)
{
    return 4 * x;
}

START_TEST(honest_kernels_pass_with_the_right_values)
{
    expect_values(make_bench(honest, NULL, GANTRY_WRITE, 0), three_x);
    expect_values(make_bench(honest, NULL, GANTRY_READWRITE, 0), three_x);
    expect_values(make_bench(honest_sum, NULL, GANTRY_READWRITE, 0), four_and_three_x);
    expect_values(make_bench(honest_sum, NULL, GANTRY_SUM, 0), four_and_three_x);
    expect_values(make_bench(honest_max, NULL, GANTRY_MAX, 0), at_least_four);
    expect_values(make_bench(honest_prod, NULL, GANTRY_PROD, 0), four_x);
}
END_TEST

START_TEST(a_function_that_never_gives_the_same_is_not_accused)
{
    smuggler s = { 0 };
    expect(make_bench(different_every_time, &s, GANTRY_WRITE, 0), GANTRY_OK, "");
}
END_TEST

START_TEST(partial_writers_are_caught)
{
    expect(make_bench(partial_writer, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
           "node \"k\" on device \"dev0\" left 4 of 160 bytes of argument \"y\" (y) unwritten, first byte 68; write "
           "all of "
           "it, or declare readwrite");
    expect(
        make_bench(adds_to_what_it_writes, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" gives another byte 0 of argument \"y\" (y) when bytes change that it should not "
        "read: old contents of what it declares to write, scratch, or memory beside its regions; declare readwrite, or "
        "initialise scratch");
}
END_TEST

START_TEST(kernels_that_assign_are_caught)
{
    expect(
        make_bench(assigns, NULL, GANTRY_SUM, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" does not combine (sum) with what argument \"y\" (y) held: element 0 is 0 from "
        "the identity and 0 from 4; a reduction adds to what it is given");
    expect(
        make_bench(assigns_one, NULL, GANTRY_SUM, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" does not combine (sum) with what argument \"y\" (y) held: element 39 is 1 from "
        "the identity and 1 from 8; a reduction adds to what it is given");
    expect(
        make_bench(assigns, NULL, GANTRY_MIN, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" does not combine (min) with what argument \"y\" (y) held: element 0 is 0 from "
        "the identity and 0 from -inf; a reduction adds to what it is given");
    expect(
        make_bench(assigns, NULL, GANTRY_PROD, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" does not combine (prod) with what argument \"y\" (y) held: element 1 is 3 from "
        "the identity and 3 from 2; a reduction adds to what it is given");
}
END_TEST

START_TEST(a_nan_in_one_result_only_is_caught)
{
    expect(
        make_bench(is_nan_from_the_identity_only, NULL, GANTRY_SUM, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" does not combine (sum) with what argument \"y\" (y) held: element 3 is nan from "
        "the identity and 13 from 4; a reduction adds to what it is given");
}
END_TEST

START_TEST(one_element_too_far_is_caught)
{
    expect(make_bench(writes_behind, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
           "node \"k\" on device \"dev0\" touched memory 0 bytes past the end of argument \"y\" (y), which is not its "
           "own");
    expect(
        make_bench(writes_before, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" touched memory 4 bytes before the beginning of argument \"y\" (y), which is not "
        "its own");
    expect(make_bench(reads_behind, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
           "node \"k\" on device \"dev0\" touched memory 0 bytes past the end of argument \"x\" (x), which is not its "
           "own");
    expect(make_bench(writes_its_input, NULL, GANTRY_WRITE, 0), GANTRY_E_CHECK,
           "node \"k\" on device \"dev0\" wrote to argument \"x\" (x), 8 bytes in, which it only reads; declare "
           "readwrite");
}
END_TEST

START_TEST(scratch_is_undefined_and_guarded)
{
    expect(make_bench(honest, NULL, GANTRY_WRITE, 100), GANTRY_OK, "");
    expect(
        make_bench(uses_scratch_unset, NULL, GANTRY_WRITE, 100), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" gives another byte 20 of argument \"y\" (y) when bytes change that it should "
        "not "
        "read: old contents of what it declares to write, scratch, or memory beside its regions; declare readwrite, or "
        "initialise scratch");
    expect(
        make_bench(past_scratch, NULL, GANTRY_WRITE, 100), GANTRY_E_CHECK,
        "node \"k\" on device \"dev0\" touched memory 4096 bytes past the end of its scratch memory, which is not its "
        "own");
}
END_TEST

/* Two launches; the second uses what the first was given, without saying so. */
START_TEST(undeclared_accesses_are_caught)
{
    smuggler s = { 0 };
    gantry_graph *g = gantry_graph_new("smuggle");
    int64_t n = N;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n);
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer z = gantry_graph_buffer(g, "z", GANTRY_F32, 1, &n);
    gantry_buffer_init_iota(g, x);
    gantry_node a = gantry_graph_launch(g, "a", keeps_a_pointer, &s);
    gantry_node_read(g, a, gantry_all(x));
    gantry_node_write(g, a, gantry_all(y));
    gantry_node b = gantry_graph_launch(g, "b", uses_a_pointer, &s);
    gantry_node_read(g, b, gantry_all(y));
    gantry_node_write(g, b, gantry_all(z));
    gantry_schedule *schedule = build_schedule(g, 1);
    uint32_t xs = build_instance(schedule, x.id, 1, 0, N), ys = build_instance(schedule, y.id, 1, 0, N);
    build_copy(schedule, 0, build_input(schedule, x.id), xs);
    build_op(schedule, GY_OP_LAUNCH, a.id, 0);
    build_use_all(schedule, xs, GANTRY_READ);
    build_use_all(schedule, ys, GANTRY_WRITE);
    build_op(schedule, GY_OP_LAUNCH, b.id, 0);
    build_use_all(schedule, ys, GANTRY_READ);
    build_use_all(schedule, build_instance(schedule, z.id, 1, 0, N), GANTRY_WRITE);
    gantry_run *run = check_run(schedule, 3);
    gantry_error err = { 0 };
    ck_assert_int_eq(run_once(run, &err), GANTRY_E_CHECK);
    ck_assert_str_eq(err.text,
                     "node \"b\" on device \"dev0\" touched what an earlier launch was given, through a pointer "
                     "that was kept; name what it uses as an access");
    gantry_run_free(run);

    /* The same pointer into a slab, taken in a run without checking. */
    MUST(gantry_run_new(&run, schedule, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    gantry_run_free(run);
    gantry_schedule_free(schedule);
    gantry_graph_free(g);
}
END_TEST

/* The copy that brings x is dropped from the schedule, past the checker: checking mode names the reader, and an
 * ordinary run gives wrong data. */
START_TEST(a_dropped_copy_is_caught)
{
    bench c = make_bench(honest, NULL, GANTRY_WRITE, 0);
    gy_op *dropped = &c.s->ops.at[c.upload];
    memmove(dropped, dropped + 1, (c.s->ops.count - c.upload - 1) * sizeof *dropped);
    c.s->ops.count--;
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, c.s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, c.y, &host, &bytes, MUST_ERR));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += ((const float *)host)[i] != 3 * (float)i;
    ck_assert_int_gt(wrong, 0);
    gantry_run_free(run);
    expect(c, GANTRY_E_CHECK,
           "op 1, \"k\", reads argument \"x\" (x) in memory \"mem0\", of which nothing has written byte 0 in this "
           "start: a "
           "copy, a fill or a dependency is missing in the schedule");
}
END_TEST

/* Two devices; the event that makes the reader wait is missing. Some legal order shows it. */
START_TEST(a_dropped_dependency_is_caught_by_some_order)
{
    gantry_graph *g = gantry_graph_new("order");
    int64_t n = N;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n);
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_init_iota(g, x);
    gantry_node a = gantry_graph_launch(g, "a", honest, NULL);
    gantry_node_read(g, a, gantry_all(x));
    gantry_node_write(g, a, gantry_all(y));
    gantry_schedule *s = build_schedule(g, 2);
    uint32_t xs = build_instance(s, x.id, 1, 0, N), ys = build_instance(s, y.id, 1, 0, N);
    uint32_t copy = build_copy(s, 1, build_input(s, x.id), xs);
    uint32_t launch = build_op(s, GY_OP_LAUNCH, a.id, 0);
    build_use_all(s, xs, GANTRY_READ);
    build_use_all(s, ys, GANTRY_WRITE);
    int caught[2] = { 0 };
    for (int with = 0; with < 2; with++) {
        if (with)
            build_event(s, copy, launch, 0);
        for (uint64_t seed = 0; seed < 32; seed++) {
            gantry_run *run = check_run(s, seed);
            caught[with] += run_once(run, NULL) == GANTRY_E_CHECK;
            gantry_run_free(run);
        }
    }
    ck_assert_int_gt(caught[0], 0);
    ck_assert_int_lt(caught[0], 32);
    ck_assert_int_eq(caught[1], 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* A fault outside of checked functions goes where it went before. */
static void at_fault(int number)
{
    (void)number;
    _Exit(7);
}

START_TEST(other_faults_go_where_they_went)
{
    signal(SIGSEGV, at_fault);
    bench c = make_bench(honest, NULL, GANTRY_WRITE, 0);
    gantry_run *run = check_run(c.s, 1);
    MUST(run_once(run, MUST_ERR));
    volatile char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *nowhere = 1;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checking mode");
    TCase *all = tcase_create("all");
    tcase_add_test(all, honest_kernels_pass_with_the_right_values);
    tcase_add_test(all, a_function_that_never_gives_the_same_is_not_accused);
    tcase_add_test(all, partial_writers_are_caught);
    tcase_add_test(all, kernels_that_assign_are_caught);
    tcase_add_test(all, a_nan_in_one_result_only_is_caught);
    tcase_add_test(all, one_element_too_far_is_caught);
    tcase_add_test(all, scratch_is_undefined_and_guarded);
    tcase_add_test(all, undeclared_accesses_are_caught);
    tcase_add_test(all, a_dropped_copy_is_caught);
    tcase_add_test(all, a_dropped_dependency_is_caught_by_some_order);
    tcase_add_exit_test(all, other_faults_go_where_they_went, 7);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
