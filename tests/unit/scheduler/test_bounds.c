/* SPDX-License-Identifier: Apache-2.0 */
/**
 * No prediction is below its own bound, whatever the machine is like: routes with measured points, links that are
 * shared or not, several lanes whose launches overlap, times of telling and giving out.
 */
#include "random_graph.h"
#include "suite.h"

#include "base/map.h"
#include "base/text.h"
#include "sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    uint64_t state;
} maker;

static int pick(maker *k, int n)
{
    k->state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(k->state) % (uint64_t)n);
}

/* ---- machines ---- */

/* "latency_us": .., "bandwidth_gbs": .. or "points": [[bytes, us], ..]: rising, at rates that rise and fall. */
static void add_times(maker *k, gy_text *t)
{
    int latency = 1 + pick(k, 20);
    if (!pick(k, 3)) {
        gy_text_printf(t, "\"latency_us\":%d,\"bandwidth_gbs\":%d", latency, 1 + pick(k, 20));
        return;
    }
    int64_t bytes = INT64_C(1) << pick(k, 18);
    double us = latency;
    gy_text_printf(t, "\"points\":[[%lld,%d]", (long long)bytes, latency);
    for (int i = 1 + pick(k, 3); i > 0; i--) {
        bytes *= 2 << pick(k, 4);
        us += 0.01 + (double)bytes / (1e3 * (1 + pick(k, 20)));
        gy_text_printf(t, ",[%lld,%.3f]", (long long)bytes, us);
    }
    gy_text_add(t, "]");
}

static void add_route(maker *k, gy_text *t, const char *from, const char *to, int gpu)
{
    gy_text_printf(t, "{\"from\":\"%s\",\"to\":\"%s\",", from, to);
    add_times(k, t);
    gy_text_printf(t, pick(k, 4) ? ",\"via\":[\"ram\",\"l%d\"]}" : "}", gpu);
}

static void add_devices(maker *k, gy_text *t, int gpus)
{
    for (int i = 0; i < gpus; i++)
        gy_text_printf(t,
                       "{\"id\":\"d%d\",\"type\":\"gpu\",\"memory\":\"m%d\",\"lanes\":%d,\"launch_us\":%d,"
                       "\"copy_engines\":%d,\"signal_us\":%d,\"gflops\":{\"f32\":100},\"bandwidth_gbs\":100},",
                       i, i, 1 + pick(k, 4), pick(k, 8), 1 + pick(k, 3), pick(k, 2) * pick(k, 3));
    gy_text_printf(t,
                   "{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\",\"launch_us\":%d,\"gflops\":{\"f32\":10}%s}",
                   pick(k, 2), pick(k, 2) ? ",\"use\":\"host\"" : "");
}

static gantry_machine *random_machine(maker *k)
{
    gy_text t = { 0 };
    int gpus = 1 + pick(k, 4), peers = pick(k, 2);
    gy_text_add(&t, "{\"gantry_machine\":1,\"name\":\"any\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"}");
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":%lld}", i, 1LL << (pick(k, 3) ? 33 : 16 + pick(k, 6)));
    gy_text_add(&t, "],\"devices\":[");
    add_devices(k, &t, gpus);
    gy_text_printf(&t, "],\"resources\":{\"ram\":%d", 1 + pick(k, 30));
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, ",\"l%d\":%d", i, 1 + pick(k, 30));
    gy_text_add(&t, "},\"routes\":[");
    for (int i = 0; i < gpus; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%d", i);
        add_route(k, &t, "host", id, i);
        gy_text_add(&t, ",");
        add_route(k, &t, id, "host", i);
        for (int to = 0; peers && to < gpus; to++) {
            char peer[16];
            snprintf(peer, sizeof peer, "m%d", to);
            if (to == i)
                continue;
            gy_text_add(&t, ",");
            add_route(k, &t, id, peer, i);
        }
        gy_text_add(&t, i + 1 < gpus ? "," : "]");
    }
    gy_text_printf(&t, ",\"model\":{\"contention\":\"%s\",\"start_us\":%d,\"issue_us\":%d,\"submit_us\":%d}}",
                   pick(k, 4) ? "on" : "off", pick(k, 3), pick(k, 3), pick(k, 2));
    ck_assert(!t.failed);
    gantry_machine *m = parse_machine(t.at);
    gy_text_free(&t);
    return m;
}

/* ---- graphs ---- */

#define BUFFERS 6

/* Copies that flags leave out, between arrays that live on. */
static void add_copies(maker *k, gantry_graph *g, gantry_buffer flag)
{
    gantry_buffer b[3];
    int rows = 1 + pick(k, 1 << (4 + pick(k, 14)));
    for (int i = 0; i < 3; i++) {
        b[i] = buffer(g, (const char *[]){ "c0", "c1", "c2" }[i], rows);
        gantry_buffer_set_class(g, b[i], GANTRY_STATE);
        gantry_buffer_init_value(g, b[i], i);
    }
    for (int n = pick(k, 5); n > 0; n--) {
        char id[16];
        snprintf(id, sizeof id, "copy%d", n);
        int from = pick(k, 3), to = (from + 1 + pick(k, 2)) % 3;
        gantry_node c = gantry_graph_copy(g, id, gantry_all(b[from]), gantry_all(b[to]));
        if (pick(k, 3))
            gantry_node_when(g, c, gantry_rows(flag, n % 4, n % 4 + 1));
    }
}

/* Layers of work on inputs, states and what others made, with sizes of all kinds and times of all kinds. */
static gantry_graph *graph_of_layers(maker *k)
{
    gantry_graph *g = gantry_graph_new("layers");
    gantry_buffer b[BUFFERS];
    int64_t rows[BUFFERS];
    bool changes[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        static const gantry_buffer_class classes[] = { GANTRY_INPUT, GANTRY_INPUT, GANTRY_STATE, GANTRY_CONST };
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        rows[i] = 1 + pick(k, 1 << (4 + pick(k, 14)));
        b[i] = buffer(g, name, rows[i]);
        bool made = i >= 4;
        gantry_buffer_class cls = made ? GANTRY_TEMP : classes[pick(k, 4)];
        gantry_buffer_set_class(g, b[i], cls);
        changes[i] = made || cls == GANTRY_STATE;
        if (!made)
            gantry_buffer_init_value(g, b[i], 1);
        else
            gantry_graph_fill(g, name, gantry_all(b[i]), 0);
        if (made || (cls == GANTRY_STATE && pick(k, 2)))
            gantry_buffer_output(g, b[i]);
    }
    bool flags = !pick(k, 3);
    gantry_buffer flag = buffer(g, "flag", 4);
    gantry_buffer_set_class(g, flag, GANTRY_STATE);
    gantry_buffer_init_value(g, flag, 1);
    bool dealt = pick(k, 2), whole = !pick(k, 3); /* inputs that all devices read */
    int nodes = 1 + pick(k, pick(k, 2) ? 24 : 4);
    for (int n = 0; n < nodes; n++) {
        char id[32];
        snprintf(id, sizeof id, "n%d", n);
        gantry_node w = work(g, id, pick(k, 1 << pick(k, 7)) / 2.0);
        for (int i = pick(k, 2); i < BUFFERS; i += 1 + pick(k, 4)) {
            int64_t first = whole || pick(k, 2) ? 0 : pick(k, (int)rows[i]);
            int64_t last = whole || pick(k, 2) ? rows[i] : first + 1 + pick(k, (int)(rows[i] - first));
            gantry_region r = gantry_rows(b[i], first, last);
            if (!changes[i] || (whole ? i < 4 : pick(k, 2)))
                gantry_node_read(g, w, r);
            else
                pick(k, 2) ? gantry_node_write(g, w, r) : gantry_node_readwrite(g, w, r);
        }
        snprintf(id, sizeof id, "%d %% devices", n);
        if (!pick(k, 4))
            gantry_node_on(g, w, pick(k, 2) ? "0" : "devices - 1");
        else if (dealt)
            gantry_node_on(g, w, id);
        if (flags && pick(k, 2))
            gantry_node_when(g, w, gantry_rows(flag, n % 4, n % 4 + 1));
    }
    if (flags)
        add_copies(k, g, flag);
    return g;
}

/* ---- the property ---- */

#define STARTS 64

/* So many starts are not done before so many periods have gone by, whatever the period was said to be. */
static void check_starts(const gantry_schedule *s, uint64_t seed)
{
    gy_sim_start start[STARTS];
    gantry_error err;
    ck_assert_msg(gy_sim_run_starts(s, STARTS, start, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(start[STARTS - 1].end >= STARTS * s->period_bound,
                  "seed %llu: %d starts take %lld, the bound of one is %lld", (unsigned long long)seed, STARTS,
                  (long long)start[STARTS - 1].end, (long long)s->period_bound);
}

static void try_options(gantry_graph *g, const gantry_machine *m, const gantry_schedule_options *o, uint64_t seed,
                        int *made)
{
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_status status = gantry_schedule_new(&s, g, m, o, &err);
    ck_assert_msg(!status || status == GANTRY_E_CAPACITY, "seed %llu: %s", (unsigned long long)seed, err.text);
    if (status)
        return;
    ++*made;
    ck_assert_msg(s->makespan >= s->bound, "seed %llu, objective %s, effort %d: makespan %lld, bound %lld by %s",
                  (unsigned long long)seed, o->objective ? o->objective : "-", o->effort, (long long)s->makespan,
                  (long long)s->bound, s->bound_by);
    ck_assert_msg(s->without >= s->bound_without, "seed %llu, objective %s, effort %d: %lld, bound %lld, without flags",
                  (unsigned long long)seed, o->objective ? o->objective : "-", o->effort, (long long)s->without,
                  (long long)s->bound_without);
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
    ck_assert_msg(sum.bytes_moved >= sum.bytes_needed, "seed %llu: %llu bytes are moved, and %llu needed",
                  (unsigned long long)seed, (unsigned long long)sum.bytes_moved, (unsigned long long)sum.bytes_needed);
    ck_assert_msg(s->period == 0 || s->period >= s->period_bound,
                  "seed %llu, effort %d, %u in flight: period %lld, bound %lld", (unsigned long long)seed, o->effort,
                  s->in_flight, (long long)s->period, (long long)s->period_bound);
    if (s->period > 0)
        check_starts(s, seed);
    gantry_schedule_free(s);
}

/* GANTRY_TEST_GRAPHS: how many in each of the loops. */
START_TEST(nothing_is_below_its_bound)
{
    static const char *const objectives[] = { "makespan", "period" };
    static const char *const replays[] = { "auto", "stream", "graph" };
    int graphs = getenv("GANTRY_TEST_GRAPHS") ? atoi(getenv("GANTRY_TEST_GRAPHS")) : 120, made = 0, valid = 0;
    for (int i = 0; i < graphs; i++) {
        uint64_t seed = (uint64_t)i * 4 + (uint64_t)_i;
        maker k = { .state = seed };
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_error err;
        gantry_machine *m = random_machine(&k);
        gantry_graph *g = pick(&k, 4) ? graph_of_layers(&k) : random_graph(seed, 4 + pick(&k, 20));
        o.objective = objectives[_i % 2];
        o.effort = _i / 2;
        o.replay = replays[pick(&k, 3)];
        o.in_flight = _i % 2 && !pick(&k, 3) ? 1 + pick(&k, 6) : 0;
        if (gantry_graph_check(g, &err) == GANTRY_OK) {
            valid++;
            try_options(g, m, &o, seed, &made);
        }
        gantry_graph_free(g);
        gantry_machine_free(m);
    }
    printf("%s, effort %d: %d of %d graphs are valid, %d schedules\n", objectives[_i % 2], _i / 2, valid, graphs, made);
    ck_assert_msg(made * 2 > graphs, "%d schedules of %d graphs", made, graphs);
}
END_TEST

/* One GPU, reached in 10 us with up to 64 KiB and then over a link of 1 GB/s. */
static const char machine_points[] =
    "{\"gantry_machine\":1,\"name\":\"points\",\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},{\"id\":\"gpu0\","
    "\"capacity\":\"8GiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\",\"lanes\":1,\"copy_"
    "engines\":8}],"
    "\"resources\":{"
    "\"link\":1},\"routes\":[{\"from\":\"host\",\"to\":\"gpu0\",\"both\":true,\"points\":[[32768,10],[65536,10],["
    "131072,75.536]],"
    "\"via\":[\"link\"]}]}";

/* Rows `first` to `last` of x are read on the GPU. */
static void read_rows(gantry_graph *g, gantry_buffer x, const char *id, double us, int64_t first, int64_t last)
{
    gantry_node_read(g, work(g, id, us), gantry_rows(x, first, last));
}

/* Copies that all take one time need nothing of the link: up to 64 KiB (16384 rows) 10 us, beyond that 1 GB/s. */
START_TEST(small_copies_take_no_rate)
{
    gantry_machine *m = parse_machine(machine_points);
    gantry_graph *g = gantry_graph_new("points");
    gantry_buffer x = buffer(g, "x", 20000);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    read_rows(g, x, "a", 5, 0, 16384 + _i);
    gantry_schedule *s = schedule(g, m, NULL);
    double us = _i ? 15 + (16385 * 4) / 1e3 : 15;
    ck_assert_double_eq_tol((double)s->makespan / GY_TICKS_PER_US, us, 1e-3);
    ck_assert_double_eq_tol((double)s->bound / GY_TICKS_PER_US, us, 1e-3);
    ck_assert_int_ge(s->makespan, s->bound);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Twenty parts of 4000 B: the link, at 1 GB/s, is not asked for the 80 us that they would take. One more node that
 * reads them all changes nothing: they may come in parts. */
START_TEST(many_small_copies_take_none_either)
{
    gantry_machine *m = parse_machine(machine_points);
    gantry_graph *g = gantry_graph_new("points");
    gantry_buffer x = buffer(g, "x", 20000);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        read_rows(g, x, id, 1, i * 1000, (i + 1) * 1000);
    }
    if (_i)
        read_rows(g, x, "all", 1, 0, 20000);
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_int_ge(s->makespan, s->bound);
    ck_assert_str_eq(s->bound_by, "area"); /* 1 us a node, on the one device */
    ck_assert_double_eq_tol((double)s->bound / GY_TICKS_PER_US, 20 + _i, 1e-3);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* x comes up in 4 us, `a` takes 10 and a launch of 2, `c` 5 and 2, and z goes down in 1: 24 us. Between the two a node
 * that runs by a flag, which takes 3 us beyond its work, and 1.5 where it is left out: a task of 20 us and a launch, or
 * a copy of 2 us. */
START_TEST(both_ways_by_hand)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m\",\"capacity\":"
        "\"1GiB\"}],\"devices\":[{\"id\":\"p\",\"type\":\"gpu\",\"memory\":\"m\",\"lanes\":1,\"launch_us\":2}],"
        "\"resources\":{\"link\":1},\"routes\":[{\"from\":\"host\",\"to\":\"m\",\"both\":true,\"bandwidth_gbs\":1,"
        "\"via\":[\"link\"]},"
        "{\"from\":\"m\",\"to\":\"m\",\"bandwidth_gbs\":2}],\"model\":{\"when_us\":3,\"left_out_us\":1.5}}";
    gantry_machine *m = parse_machine(machine);
    gantry_graph *g = gantry_graph_new("both");
    gantry_buffer x = buffer(g, "x", 1000), y = buffer(g, "y", 1000), z = buffer(g, "z", 250),
                  s0 = buffer(g, "s", 1000), flag = buffer(g, "flag", 1);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_set_class(g, s0, GANTRY_STATE);
    gantry_buffer_set_class(g, flag, GANTRY_STATE);
    gantry_buffer_init_value(g, s0, 1);
    gantry_buffer_init_value(g, flag, 1);
    gantry_buffer_output(g, z);
    gantry_node a = work(g, "a", 10);
    gantry_node_read(g, a, gantry_all(x));
    gantry_node_write(g, a, gantry_all(y));
    gantry_node b = _i ? gantry_graph_copy(g, "b", gantry_all(s0), gantry_all(y)) : work(g, "b", 20);
    if (!_i)
        gantry_node_write(g, b, gantry_all(y));
    gantry_node_when(g, b, gantry_all(flag));
    gantry_node c = work(g, "c", 5);
    gantry_node_read(g, c, gantry_all(y));
    gantry_node_write(g, c, gantry_all(z));
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(24 + (_i ? 3 + 2 : 3 + 22)));
    ck_assert_int_eq(s->without, gy_ticks_from_us(24 + 1.5));
    ck_assert(s->bound <= s->makespan && s->bound >= s->makespan - 10); /* bytes are rounded down */
    ck_assert(s->bound_without <= s->without && s->bound_without >= s->without - 10);
    ck_assert_str_eq(s->bound_without_by, "path");
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A copy of 2 us, and 3 us for asking its flag. */
START_TEST(copies_ask_their_flag)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m\",\"capacity\":"
        "\"1GiB\"}],\"devices\":[{\"id\":\"p\",\"type\":\"gpu\",\"memory\":\"m\",\"lanes\":1}],"
        "\"routes\":[{\"from\":\"host\",\"to\":\"m\",\"both\":true,\"bandwidth_gbs\":1},"
        "{\"from\":\"m\",\"to\":\"m\",\"bandwidth_gbs\":2}],\"model\":{\"when_us\":3}}";
    gantry_machine *m = parse_machine(machine);
    gantry_graph *g = gantry_graph_new("asks");
    gantry_buffer x = buffer(g, "x", 1000), y = buffer(g, "y", 1000), flag = buffer(g, "flag", 1);
    gantry_buffer b[] = { x, y, flag };
    for (int i = 0; i < 3; i++) {
        gantry_buffer_set_class(g, b[i], GANTRY_STATE);
        gantry_buffer_init_value(g, b[i], 1);
    }
    gantry_node_when(g, gantry_graph_copy(g, "c", gantry_all(x), gantry_all(y)), gantry_all(flag));
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(5));
    ck_assert_int_eq(s->bound, s->makespan);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bounds");
    TCase *c = tcase_create("bounds");
    tcase_set_timeout(c, 240);
    tcase_add_loop_test(c, nothing_is_below_its_bound, 0, 4);
    tcase_add_loop_test(c, small_copies_take_no_rate, 0, 2);
    tcase_add_loop_test(c, many_small_copies_take_none_either, 0, 2);
    tcase_add_test(c, copies_ask_their_flag);
    tcase_add_loop_test(c, both_ways_by_hand, 0, 2);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
