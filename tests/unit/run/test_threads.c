/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a CPU device: whatever their number, every kernel that is cut gives the bits of one thread; a function
 * of the program is cut where it says, each item is done once, and the lowest failure is told. */
#include "base/thread.h"
#include "build.h"
#include "machine/machine.h"
#include "run/team.h"
#include <sched.h>
#include <string.h>
#include <time.h>

static const int counts[] = { 1, 2, 3, 7 };
enum { COUNTS = sizeof counts / sizeof *counts };

static gantry_schedule *schedule_on(gantry_graph *g, gantry_machine *m)
{
    gantry_schedule *s;
    MUST(gantry_graph_check(g, MUST_ERR));
    MUST(gantry_schedule_new(&s, g, m, NULL, MUST_ERR));
    gantry_graph_free(g);
    gantry_machine_free(m);
    return s;
}

static gantry_machine *one_device(void)
{
    gantry_machine *m;
    MUST(gantry_machine_virtual(&m, 1, MUST_ERR));
    return m;
}

/* ---- kernels of the library ---- */

/* Of all outputs. */
static size_t hashes_of(gantry_schedule *s, int threads, uint64_t *hash, size_t room)
{
    gantry_run *run;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.backend = "host";
    o.threads = threads;
    MUST(gantry_run_new(&run, s, &o, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    size_t count = 0;
    const gantry_graph *g = s->graph;
    for (uint32_t b = 0; b < g->buffers.count; b++)
        if (g->buffers.at[b].output) {
            ck_assert(count < room);
            MUST(gantry_run_hash(run, (gantry_buffer){ .id = b }, &hash[count++], MUST_ERR));
        }
    gantry_run_free(run);
    return count;
}

START_TEST(kernels_have_the_same_bits)
{
    enum { MOST = 96 };
    gantry_graph *g;
    uint64_t first[MOST], hash[MOST];
    MUST(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/tests/unit/run/threads.json", NULL, MUST_ERR));
    gantry_schedule *s = schedule_on(g, one_device());
    size_t outputs = hashes_of(s, 1, first, MOST);
    ck_assert_uint_ge(outputs, 63);
    for (int i = 1; i < COUNTS; i++) {
        ck_assert_uint_eq(hashes_of(s, counts[i], hash, MOST), outputs);
        for (size_t k = 0; k < outputs; k++)
            ck_assert_msg(hash[k] == first[k], "output %zu differs with %d threads", k, counts[i]);
    }
    gantry_schedule_free(s);
}
END_TEST

/* ---- functions of a program ---- */

enum { ITEMS = 100003, GRAIN = 1000 };

typedef struct call {
    atomic_uchar done[ITEMS];
    atomic_int ranges, odd, meeting;
    int parties;      /* threads that have to be in pieces at the same time, or the test waits for ever */
    int64_t wrong[2]; /* items that fail */
} call;

static gantry_status count_items(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)l;
    for (int64_t i = first; i < last; i++)
        atomic_fetch_add(&((call *)data)->done[i], 1);
    return GANTRY_OK;
}

static gantry_status do_range(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    call *c = data;
    atomic_fetch_add(&c->ranges, 1);
    atomic_fetch_add(&c->odd, first % GRAIN != 0 || last <= first || (last % GRAIN != 0 && last != ITEMS));
    atomic_fetch_add(&c->meeting, 1);
    while (atomic_load(&c->meeting) < c->parties)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    for (int k = 0; k < 2; k++)
        if (c->wrong[k] >= first && c->wrong[k] < last)
            return k ? GANTRY_E_UNSUPPORTED : GANTRY_E_IO;
    return count_items(l, data, first, last);
}

static gantry_status cut_call(const gantry_launch *l)
{
    return gantry_launch_cut(l, ITEMS, GRAIN, do_range, l->user);
}

static gantry_schedule *schedule_of_call(call *c, gantry_machine *m)
{
    gantry_graph *g = gantry_graph_new("call");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ 4 });
    gantry_node n = gantry_graph_launch(g, "cut", cut_call, c);
    gantry_node_write(g, n, gantry_all(x));
    gantry_buffer_output(g, x);
    return schedule_on(g, m);
}

static gantry_run *run_of(gantry_schedule *s, int threads)
{
    gantry_run *run;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.backend = "host";
    o.threads = threads;
    MUST(gantry_run_new(&run, s, &o, MUST_ERR));
    return run;
}

static void expect_each_once(const call *c)
{
    int wrong = 0;
    for (int i = 0; i < ITEMS; i++)
        wrong += c->done[i] != 1;
    ck_assert_msg(wrong == 0, "%d items were not done once", wrong);
    ck_assert_int_eq(c->odd, 0);
}

/* All threads are at work at the same time: each waits in its first range for the others. */
START_TEST(items_are_done_once_by_so_many_threads)
{
    static call c;
    int threads = counts[_i];
    memset(&c, 0, sizeof c);
    c.wrong[0] = c.wrong[1] = -1;
    c.parties = threads;
    gantry_schedule *s = schedule_of_call(&c, one_device());
    gantry_run *run = run_of(s, threads);
    for (int start = 0; start < 3; start++) {
        memset(c.done, 0, sizeof c.done);
        c.meeting = c.ranges = 0;
        MUST(run_once(run, MUST_ERR));
        expect_each_once(&c);
        ck_assert_msg(threads == 1 ? c.ranges == 1 : c.ranges >= threads && c.ranges <= 4 * threads, "%d ranges",
                      c.ranges);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(the_lowest_failure_is_told)
{
    static call c;
    gantry_error err;
    memset(&c, 0, sizeof c);
    c.wrong[0] = 1500;  /* E_IO */
    c.wrong[1] = 99000; /* E_UNSUPPORTED */
    gantry_schedule *s = schedule_of_call(&c, one_device());
    gantry_run *run = run_of(s, counts[_i]);
    ck_assert_int_eq(run_once(run, &err), GANTRY_E_KERNEL);
    ck_assert_ptr_nonnull(strstr(err.text, "E_IO (-3)"));
    c.wrong[0] = c.wrong[1] = -1;
    memset(c.done, 0, sizeof c.done);
    MUST(run_once(run, MUST_ERR));
    expect_each_once(&c);
    gantry_run_free(run);
    gantry_schedule_free(s);
}
END_TEST

/* A launch that a program makes by itself, or a library that is older than its header, has nobody to help. */
START_TEST(without_a_team_one_call_has_all)
{
    static call c;
    gantry_launch l = { .struct_size = sizeof l };
    memset(&c, 0, sizeof c);
    c.wrong[0] = c.wrong[1] = -1;
    ck_assert_int_eq(gantry_launch_cut(&l, ITEMS, GRAIN, do_range, &c), GANTRY_OK);
    expect_each_once(&c);
    ck_assert_int_eq(c.ranges, 1);
    ck_assert_int_eq(gantry_launch_cut(&l, 0, GRAIN, do_range, &c), GANTRY_OK);
    ck_assert_int_eq(c.ranges, 1);
    l = (gantry_launch){ .struct_size = offsetof(gantry_launch, cut), .cut = gy_team_cut };
    memset(c.done, 0, sizeof c.done);
    ck_assert_int_eq(gantry_launch_cut(&l, ITEMS, GRAIN, do_range, &c), GANTRY_OK);
    expect_each_once(&c);
    ck_assert_int_eq(c.ranges, 2);
}
END_TEST

/* Where a piece cuts again, the team is taken: its thread has all of it. */
typedef struct inner {
    atomic_int calls, done;
} inner;

static gantry_status innermost(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)l;
    atomic_fetch_add(&((inner *)data)->calls, 1);
    atomic_fetch_add(&((inner *)data)->done, (int)(last - first));
    return GANTRY_OK;
}

static gantry_status middle(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        if (gantry_launch_cut(l, 50, 1, innermost, data))
            return GANTRY_E_KERNEL;
    return GANTRY_OK;
}

static gantry_status nest(const gantry_launch *l)
{
    return gantry_launch_cut(l, 20, 1, middle, l->user);
}

START_TEST(pieces_may_cut_again)
{
    inner c = { 0, 0 };
    gantry_graph *g = gantry_graph_new("nest");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ 4 });
    gantry_node n = gantry_graph_launch(g, "nest", nest, &c);
    gantry_node_write(g, n, gantry_all(x));
    gantry_buffer_output(g, x);
    gantry_schedule *s = schedule_on(g, one_device());
    gantry_run *run = run_of(s, 3);
    MUST(run_once(run, MUST_ERR));
    ck_assert_int_eq(c.calls, 20);
    ck_assert_int_eq(c.done, 20 * 50);
    gantry_run_free(run);
    gantry_schedule_free(s);
}
END_TEST

/* ---- how many ---- */

static uint32_t threads_of(gantry_schedule *s, int asked, uint32_t device)
{
    gy_teams *teams;
    MUST(gy_teams_make(&teams, s, NULL, asked, MUST_ERR));
    uint32_t threads = gy_teams_threads(teams, device);
    ck_assert((gy_teams_of(teams)[device] != NULL) == (threads > 1));
    gy_teams_free(teams);
    return threads;
}

static gantry_machine *machine_with(const char *threads)
{
    gantry_machine *m;
    char text[512];
    snprintf(text, sizeof text,
             "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}],"
             "\"devices\":[{\"id\":\"a\",\"memory\":\"host\"%s},{\"id\":\"b\",\"memory\":\"host\"}]}",
             threads);
    MUST(gantry_machine_parse(&m, text, strlen(text), NULL, MUST_ERR));
    return m;
}

static gantry_schedule *schedule_of_two(gantry_machine *m, bool both)
{
    static call c;
    gantry_graph *g = gantry_graph_new("two");
    for (int i = 0; i < 1 + both; i++) {
        gantry_buffer x = gantry_graph_buffer(g, i ? "y" : "x", GANTRY_F32, 1, (int64_t[]){ 4 });
        gantry_node n = gantry_graph_launch(g, i ? "cut1" : "cut0", cut_call, &c);
        gantry_node_write(g, n, gantry_all(x));
        gantry_node_on(g, n, i ? "b" : "a");
        gantry_buffer_output(g, x);
    }
    return schedule_on(g, m);
}

START_TEST(the_machine_says_how_many)
{
    gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
    gantry_machine *m = machine_with(",\"threads\":5"), *again;
    char *text;
    size_t length;
    MUST(gantry_machine_device(m, 0, &info, MUST_ERR));
    ck_assert_int_eq(info.threads, 5);
    MUST(gantry_machine_device(m, 1, &info, MUST_ERR));
    ck_assert_int_eq(info.threads, 0);
    MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
    MUST(gantry_machine_parse(&again, text, length, NULL, MUST_ERR));
    gantry_free(text);
    gantry_machine_free(m);
    MUST(gantry_machine_device(again, 0, &info, MUST_ERR));
    ck_assert_int_eq(info.threads, 5);
    gantry_schedule *s = schedule_of_two(again, true);
    ck_assert_uint_eq(threads_of(s, 0, 0), 5);
    ck_assert_uint_eq(threads_of(s, 3, 0), 3); /* what is asked for goes before it */
    ck_assert_uint_eq(threads_of(s, 1, 0), 1);
    gantry_schedule_free(s);
}
END_TEST

/* Times hold for the threads that were there. */
START_TEST(a_calibrated_machine_says_how_many)
{
    gantry_graph *g;
    gantry_machine *m;
    gantry_run *run;
    gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    MUST(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/tests/unit/run/threads.json", NULL, MUST_ERR));
    gantry_schedule *s = schedule_on(g, one_device());
    o.backend = "host";
    o.threads = 3;
    o.record_trace = 1;
    MUST(gantry_run_new(&run, s, &o, MUST_ERR));
    for (int start = 0; start < 2; start++) {
        MUST(run_once(run, MUST_ERR));
        MUST(gantry_run_sample(run, MUST_ERR));
    }
    MUST(gantry_run_calibrated(&m, run, MUST_ERR));
    MUST(gantry_machine_device(m, 0, &info, MUST_ERR));
    ck_assert_int_eq(info.threads, 3);
    gantry_machine_free(m);
    gantry_run_free(run);
    gantry_schedule_free(s);
}
END_TEST

/* Cores that this process may use are divided among the devices that compute. */
START_TEST(cores_are_shared_out)
{
    cpu_set_t before, one;
    gantry_schedule *both = schedule_of_two(machine_with(""), true), *single = schedule_of_two(machine_with(""), false);
    uint32_t cores = gy_thread_processors();
    ck_assert_uint_eq(threads_of(single, 0, 0), cores);
    ck_assert_uint_eq(threads_of(single, 0, 1), 0); /* has nothing to do */
    ck_assert_uint_eq(threads_of(both, 0, 0), cores > 1 ? cores / 2 : 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(threads_of(single, 0, 0), 1);
    ck_assert_uint_eq(threads_of(single, 2, 0), 2);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
    ck_assert_uint_eq(gy_thread_processors_of(-1), cores);
    ck_assert_uint_eq(gy_thread_processors_of(100000), cores); /* there is no such node */
    ck_assert(gy_thread_processors_of(0) >= 1 && gy_thread_processors_of(0) <= cores);
    gantry_schedule_free(both);
    gantry_schedule_free(single);
}
END_TEST

START_TEST(wrong_numbers_are_refused)
{
    gantry_run *run;
    gantry_error err;
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    gantry_schedule *s = schedule_of_two(machine_with(""), true);
    o.threads = _i ? -1 : 1025;
    ck_assert_int_eq(gantry_run_new(&run, s, &o, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, _i ? "threads of the run options is -1; give how many threads each CPU device computes "
                                    "with, 1 to 1024, or 0 for as many as the machine and its cores say"
                                  : "threads of the run options is 1025; give how many threads each CPU device "
                                    "computes with, 1 to 1024, or 0 for as many as the machine and its cores say");
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run threads");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, kernels_have_the_same_bits);
    tcase_add_loop_test(tc, items_are_done_once_by_so_many_threads, 0, COUNTS);
    tcase_add_loop_test(tc, the_lowest_failure_is_told, 0, COUNTS);
    tcase_add_test(tc, without_a_team_one_call_has_all);
    tcase_add_test(tc, pieces_may_cut_again);
    tcase_add_test(tc, the_machine_says_how_many);
    tcase_add_test(tc, a_calibrated_machine_says_how_many);
    tcase_add_test(tc, cores_are_shared_out);
    tcase_add_loop_test(tc, wrong_numbers_are_refused, 0, 2);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
