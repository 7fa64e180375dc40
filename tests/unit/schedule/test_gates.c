/* SPDX-License-Identifier: Apache-2.0 */
/* One CUDA graph or one for each GPU: what each is predicted to take, by hand on small schedules and by another
 * algorithm on drawn ones; what is chosen, and what is left to one graph. */
#include "schedule/gates/gates.h"

#include "support/faults.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200 };

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static gy_ticks us(double of)
{
    return gy_ticks_from_us(of);
}

/* GPUs that launch in 1 us and give out a graph in 3. `more`: of the model. */
static gantry_machine *machine_of(int gpus, const char *more)
{
    char text[8000];
    int n = snprintf(text, sizeof text,
                     "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\",\"pinned\":true}");
    for (int i = 0; i < gpus; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ",{\"id\":\"m%d\",\"capacity\":\"1GiB\"}", i);
    n += snprintf(text + n, sizeof text - (size_t)n, "],\"devices\":[");
    for (int i = 0; i < gpus; i++)
        n += snprintf(
            text + n, sizeof text - (size_t)n,
            "{\"id\":\"g%d\",\"type\":\"gpu\",\"memory\":\"m%d\",\"lanes\":4,\"launch_us\":1,\"signal_us\":2},", i, i);
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\"}],\"routes\":[{\"from\":\"*\","
                  "\"to\":\"*\",\"latency_us\":2,\"bandwidth_gbs\":10,\"kernel_bytes\":4096}],\"model\":{"
                  "\"submit_us\":3%s%s}}",
                  more ? "," : "", more ? more : "");
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_machine_parse(&m, text, (size_t)n, "machine", &err), "%s", err.text);
    return m;
}

/* ---- schedules by hand: lanes of GPUs, ops that take so long, rows ---- */

static gantry_schedule *empty_schedule(int gpus, int lanes, const char *more)
{
    gantry_schedule *s = gy_schedule_alloc();
    s->machine = machine_of(gpus, more);
    s->replay = GY_REPLAY_GRAPH;
    for (int i = 0; i < gpus * lanes; i++)
        ck_assert(gy_vec_push(&s->lanes, ((gy_lane){ (uint32_t)(i / lanes), GY_LANE_COMPUTE, false })));
    return s;
}

/* Its predicted times are `begin` and `begin` + `time`. */
static uint32_t add_op(gantry_schedule *s, uint32_t lane, double begin, double time)
{
    gy_op op = { .kind = GY_OP_FILL, .node = GY_NONE, .lane = (uint32_t)s->op_lane.count, .lanes = 1 };
    op.duration = us(time);
    op.start = us(begin);
    op.end = us(begin + time);
    ck_assert(gy_vec_push(&s->op_lane, lane) && gy_vec_push(&s->ops, op));
    return (uint32_t)s->ops.count - 1;
}

static void add_row(gantry_schedule *s, uint32_t from, uint32_t to)
{
    gy_sync row = { .from = from, .to = to, .carrier = GY_CARRIER_EDGE, .slot = GY_NONE };
    ck_assert(gy_vec_push(&s->sync, row));
}

static gy_gate_times times_of(const gantry_schedule *s)
{
    gy_gate_times t;
    gantry_error err = { 0 };
    ck_assert_msg(!gy_gates_predict(s, &t, &err), "%s", err.text);
    return t;
}

static const char costs[] = "\"edge_us\":6,\"gate_us\":2.5";

/* To and fro: one way only, so all that it is made of adds up. */
START_TEST(hops)
{
    enum { HOPS = 10 };
    gantry_schedule *s = empty_schedule(2, 1, costs);
    for (uint32_t i = 0; i <= HOPS; i++) {
        add_op(s, i % 2, 10 * i, 4);
        if (i)
            add_row(s, i - 1, i);
    }
    gy_gate_times t = times_of(s);
    ck_assert_uint_eq(t.rows, HOPS);
    ck_assert_uint_eq(t.gpus, 2);
    ck_assert_int_eq(t.one, us(11 * 4 + HOPS * 6));
    ck_assert_int_eq(t.each, us(11 * 4 + HOPS * 2.5 + 3));
    ck_assert(gy_gates_pay(&t));
    gantry_schedule_free(s);
}
END_TEST

/* A row within a GPU is an edge of its graph, which costs nothing here; nor do rows that a lane carries, or that speak
 * of another start. */
START_TEST(within)
{
    gantry_schedule *s = empty_schedule(2, 2, costs);
    uint32_t first = add_op(s, 0, 0, 4), next = add_op(s, 1, 4, 4);
    add_row(s, first, next);
    add_op(s, 2, 0, 5);
    gy_sync lane = { .from = 0, .to = 1, .carrier = GY_CARRIER_LANE }, later = { .from = 0, .to = 2, .distance = 1 };
    later.carrier = GY_CARRIER_EVENT;
    ck_assert(gy_vec_push(&s->sync, lane) && gy_vec_push(&s->sync, later));
    gy_gate_times t = times_of(s);
    ck_assert_uint_eq(t.rows, 0);
    ck_assert(t.one == us(8) && t.each == us(8) && !gy_gates_pay(&t));
    gantry_schedule_free(s);
}
END_TEST

/* Two lanes of g1 wait for g0: the first in the order for an op that ends late, the second for one that ended soon.
 * That of the second is predicted to end before, so one gate takes both in, and holds the second back. */
START_TEST(held_back)
{
    gantry_schedule *s = empty_schedule(2, 2, costs);
    uint32_t late = add_op(s, 0, 0, 50), soon = add_op(s, 1, 0, 5);
    uint32_t a = add_op(s, 2, 56, 1), b = add_op(s, 3, 11, 80);
    add_row(s, late, a);
    add_row(s, soon, b);
    gy_gate_times t = times_of(s);
    ck_assert_int_eq(t.one, us(5 + 6 + 80));
    ck_assert_int_eq(t.each, us(50 + 2.5 + 80 + 3));
    ck_assert(!gy_gates_pay(&t));
    gantry_schedule_free(s);
}
END_TEST

/* The same with b ahead of a: it has a gate of its own, which is behind nothing late. */
START_TEST(ahead)
{
    gantry_schedule *s = empty_schedule(2, 2, costs);
    uint32_t late = add_op(s, 0, 0, 50), soon = add_op(s, 1, 0, 5);
    uint32_t b = add_op(s, 3, 11, 80), a = add_op(s, 2, 56, 1);
    add_row(s, soon, b);
    add_row(s, late, a);
    gy_gate_times t = times_of(s);
    ck_assert_int_eq(t.each, us(5 + 2.5 + 80 + 3));
    gantry_schedule_free(s);
}
END_TEST

/* A gate comes behind what tells others of its GPU's ops, as those were captured before. */
START_TEST(behind_what_tells)
{
    gantry_schedule *s = empty_schedule(2, 2, costs);
    uint32_t slow = add_op(s, 2, 0, 40), soon = add_op(s, 0, 0, 5);
    uint32_t on_g0 = add_op(s, 1, 46, 1), on_g1 = add_op(s, 3, 11, 30);
    add_row(s, slow, on_g0); /* g1 tells g0 of an op that ends at 40 */
    add_row(s, soon, on_g1);
    gy_gate_times t = times_of(s);
    ck_assert_int_eq(t.one, us(40 + 6 + 1));
    ck_assert_int_eq(t.each, us(40 + 1 + 30 + 3)); /* behind a launch, that of the kernel that tells */
    gantry_schedule_free(s);
}
END_TEST

/* ---- copies, which tell of themselves ---- */

/* To and fro between two GPUs, `elements` floats each time. */
static gantry_schedule *to_and_fro(gantry_graph **g, gantry_machine **m, int elements)
{
    char text[1000];
    gantry_schedule *s = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err = { 0 };
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[2,%d],\"split\":2,\"class\":\"state\"},"
        "\"b\":{\"dtype\":\"f32\",\"shape\":[2,%d],\"split\":2,\"class\":\"state\"}},\"nodes\":[{\"repeat\":8,"
        "\"nodes\":[{\"id\":\"there\",\"kernel\":\"copy\",\"args\":{\"x\":\"a[0]\",\"y\":\"b[1]\"},\"on\":\"g1\"},"
        "{\"id\":\"back\",\"kernel\":\"copy\",\"args\":{\"x\":\"b[1]\",\"y\":\"a[0]\"},\"on\":\"g0\"}]}]}",
        elements, elements);
    options.replay = "graph";
    *m = machine_of(2, costs);
    ck_assert_msg(!gantry_graph_parse(g, text, (size_t)length, "graph", NULL, NULL, &err), "%s", err.text);
    ck_assert_msg(!gantry_schedule_new(&s, *g, *m, &options, &err), "%s", err.text);
    return s;
}

/* Of copies of up to 4,096 bytes a kernel makes (`kernel_bytes` above), that tells by itself: rows from them cost a
 * launch less. The way to and fro is all there is, so what rows cost is what the two differ by. */
START_TEST(copies_that_tell)
{
    static const struct {
        int elements;
        bool tells;
    } of[] = { { 1, true }, { 1024, true }, { 1025, false } };
    gantry_graph *g = NULL;
    gantry_machine *m;
    gantry_schedule *s = to_and_fro(&g, &m, of[_i].elements);
    uint32_t copies = 0, told = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        bool is = gy_op_is_copy(&s->ops.at[i]);
        copies += is;
        ck_assert_int_eq(gy_gate_cost(s, i, 0), of[_i].tells && is ? us(1.5) : us(2.5));
        ck_assert_int_eq(gy_gate_cost(s, i, GY_NONE), us(2.5)); /* several GPUs wait for it */
    }
    for (size_t i = 0; i < s->sync.count; i++)
        told += gy_op_is_copy(&s->ops.at[s->sync.at[i].from]) && s->sync.at[i].distance == 0;
    gy_gate_times t = times_of(s);
    ck_assert_uint_ge(copies, 15);
    ck_assert_uint_ge(told, 15);
    if (of[_i].tells)
        ck_assert_int_eq(t.one - t.each, (gy_ticks)t.rows * us(6 - 1.5) - us(3));
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Each alone can be too much for one launch that tells. */
START_TEST(most_of_a_launch)
{
    static const struct {
        gy_gate_copies of;
        bool tells;
    } cases[] = { { { 32768, 8, 4 }, true },  { { 32769, 8, 4 }, false }, { { 32768, 9, 4 }, false },
                  { { 32768, 8, 5 }, false }, { { 1, 1, 0 }, false },     { { 0, 1, 1 }, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(gy_gate_tells(&cases[i].of) == cases[i].tells, "case %zu", i);
}
END_TEST

static void check_told(const gantry_schedule *s, const uint32_t *want)
{
    uint32_t to[8] = { 0 };
    gy_gate_told(to, s);
    for (size_t i = 0; i < s->ops.count; i++)
        ck_assert_msg(to[i] == want[i], "op %zu: GPU %u, not %u", i, to[i], want[i]);
}

/* Of three GPUs: one that waits for an op alone is told by it, two are not; those of an op's own GPU, of the lane and
 * of other starts do not count. */
START_TEST(told_alone)
{
    static const uint32_t want[] = { 1, GY_NONE, GY_NONE, 1, GY_NONE, GY_NONE, GY_NONE };
    gantry_schedule *s = empty_schedule(3, 1, costs);
    for (uint32_t i = 0; i < 5; i++)
        add_op(s, 0, i, 1);
    uint32_t g1 = add_op(s, 1, 10, 1), g2 = add_op(s, 2, 10, 1);
    add_row(s, 0, g1);
    add_row(s, 0, g1);
    add_row(s, 1, g1);
    add_row(s, 1, g2);
    add_row(s, 2, 3);
    add_row(s, 3, g1);
    add_row(s, 3, 4);
    gy_sync lane = { .from = 4, .to = g1, .carrier = GY_CARRIER_LANE }, later = { .from = 4, .to = g2, .distance = 1 };
    later.carrier = GY_CARRIER_EVENT;
    ck_assert(gy_vec_push(&s->sync, lane) && gy_vec_push(&s->sync, later));
    check_told(s, want);
    gantry_schedule_free(s);
}
END_TEST

/* All that an op waits for on its own GPU counts, too, where it is asked what may be taken into its gate. */
START_TEST(awaited)
{
    gantry_schedule *s = empty_schedule(2, 2, costs);
    uint32_t far = add_op(s, 0, 0, 5), near = add_op(s, 2, 0, 40), op = add_op(s, 3, 50, 1);
    gy_ticks end[3];
    add_row(s, far, op);
    gy_gate_awaited(end, s);
    ck_assert(end[far] == 0 && end[near] == 0 && end[op] == us(5));
    add_row(s, near, op);
    gy_gate_awaited(end, s);
    ck_assert_int_eq(end[op], us(40));
    gantry_schedule_free(s);
}
END_TEST

/* ---- drawn ones ---- */

static gantry_schedule *drawn(uint64_t seed, const char *more)
{
    uint64_t state = seed * 77 + 5;
    int gpus = 2 + (int)draw(&state, 3), lanes = 1 + (int)draw(&state, 4);
    uint32_t ops = 20 + draw(&state, MOST - 20);
    gantry_schedule *s = empty_schedule(gpus, lanes, more);
    for (uint32_t i = 0; i < ops; i++)
        add_op(s, draw(&state, (uint32_t)(gpus * lanes)), i, 1 + draw(&state, 9));
    for (uint32_t i = 1; i < ops; i++)
        for (uint32_t k = draw(&state, 3); k > 0; k--)
            add_row(s, draw(&state, i), i);
    return s;
}

static uint32_t device_at(const gantry_schedule *s, uint32_t op)
{
    return s->lanes.at[s->op_lane.at[s->ops.at[op].lane]].device;
}

/* Relaxes all orders between ops until none is violated (Bellman and Ford). */
static gy_ticks relaxed(const gantry_schedule *s, gy_ticks between)
{
    gy_ticks begin[MOST] = { 0 }, all = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t to = 0; to < s->ops.count; to++)
            for (uint32_t from = 0; from < to; from++) {
                bool waits = s->op_lane.at[from] == s->op_lane.at[to];
                gy_ticks cost = 0;
                for (size_t r = 0; r < s->sync.count; r++)
                    if (s->sync.at[r].from == from && s->sync.at[r].to == to) {
                        waits = true;
                        cost = device_at(s, from) == device_at(s, to) ? 0 : between;
                    }
                gy_ticks least = begin[from] + s->ops.at[from].duration + cost;
                if (waits && begin[to] < least) {
                    begin[to] = least;
                    changed = true;
                }
            }
    }
    for (uint32_t i = 0; i < s->ops.count; i++)
        all = begin[i] + s->ops.at[i].duration > all ? begin[i] + s->ops.at[i].duration : all;
    return all;
}

/* In one graph it is the longest way. By gates it is no shorter than with rows that cost a gate alone, and cheaper
 * gates never make it longer. */
START_TEST(longest_ways)
{
    gantry_schedule *s = drawn((uint64_t)_i, costs), *dear = drawn((uint64_t)_i, "\"edge_us\":6,\"gate_us\":9");
    gy_gate_times t = times_of(s), d = times_of(dear);
    gy_ticks graphs = (gy_ticks)(t.gpus - 1) * us(3);
    ck_assert_int_eq(t.one, relaxed(s, us(6)));
    ck_assert_int_ge(t.each, relaxed(s, us(2.5)) + (t.rows ? graphs : 0));
    ck_assert(d.one == t.one && d.each >= t.each);
    ck_assert(d.each >= relaxed(s, us(9)));
    gantry_schedule_free(s);
    gantry_schedule_free(dear);
}
END_TEST

/* ---- which ---- */

START_TEST(pays)
{
    gy_gate_times t = { .one = us(110), .each = us(100), .rows = 1, .gpus = 2 };
    ck_assert(gy_gates_pay(&t));
    t.each = us(100.001);
    ck_assert(!gy_gates_pay(&t));
    t.each = us(1);
    t.rows = 0;
    ck_assert(!gy_gates_pay(&t));
    gantry_machine *m = machine_of(2, costs), *half = machine_of(2, "\"edge_us\":6"), *none = machine_of(2, NULL);
    ck_assert(gy_gates_known(m) && !gy_gates_known(half) && !gy_gates_known(none));
    gantry_machine_free(m);
    gantry_machine_free(half);
    gantry_machine_free(none);
}
END_TEST

/* Of large ops, an edge is nothing. */
START_TEST(large_ops)
{
    gantry_schedule *s = empty_schedule(2, 1, costs);
    for (uint32_t i = 0; i < 10; i++) {
        add_op(s, i % 2, 1000 * i, 900);
        if (i)
            add_row(s, i - 1, i);
    }
    gy_gate_times t = times_of(s);
    ck_assert(t.each < t.one && !gy_gates_pay(&t));
    gantry_schedule_free(s);
}
END_TEST

/* To users `--explain` tells both, and which. */
START_TEST(explained)
{
    static const char *const words[] = { "by one CUDA graph for each GPU", "by one CUDA graph for all GPUs",
                                         "by one CUDA graph for all GPUs: a node has a `when`" };
    char text[2000], *why = NULL;
    int n = _i == 1 ? 20000000 : 64;
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[2,%d],\"split\":2,\"class\":\"state\"},"
             "\"b\":{\"dtype\":\"f32\",\"shape\":[2,%d],\"split\":2,\"class\":\"state\"},"
             "\"flag\":{\"dtype\":\"u8\",\"shape\":[1],\"class\":\"state\"}},\"nodes\":[{\"repeat\":8,\"nodes\":["
             "{\"id\":\"there\",\"kernel\":\"copy\",\"args\":{\"x\":\"a[0]\",\"y\":\"b[1]\"},\"on\":\"g1\"},"
             "{\"id\":\"back\",\"kernel\":\"copy\",\"args\":{\"x\":\"b[1]\",\"y\":\"a[0]\"},\"on\":\"g0\"%s}]}]}",
             n, n, _i == 2 ? ",\"when\":{\"buffer\":\"flag\"}" : "");
    gantry_graph *g = NULL;
    gantry_machine *m = machine_of(2, costs);
    gantry_schedule *s = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err = { 0 };
    options.replay = "graph";
    ck_assert_msg(!gantry_graph_parse(&g, text, strlen(text), "graph", NULL, NULL, &err), "%s", err.text);
    ck_assert_msg(!gantry_schedule_new(&s, g, m, &options, &err), "%s", err.text);
    ck_assert_msg(!gantry_schedule_explain(s, gantry_graph_find_node(g, "there"), &why, NULL, &err), "%s", err.text);
    ck_assert_msg(strstr(why, words[_i]) != NULL, "%s", why);
    ck_assert_int_eq(strstr(why, "us on the longest way by gates") != NULL, _i < 2);
    gantry_free(why);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Of drawn ops of three GPUs, a third of which wait: those from each op on, as far as is looked ahead, one by one. */
START_TEST(waiters)
{
    enum { GPUS = 3, OPS = 3 * GY_GATE_AHEAD };
    uint32_t gpu[OPS], op[OPS], first[GPUS + 1];
    gy_gate_waiters w = { op, first };
    uint64_t state = (uint64_t)_i;
    size_t ops = _i ? OPS - (size_t)_i : 0;
    for (size_t i = 0; i < ops; i++)
        gpu[i] = draw(&state, 3) ? GY_NONE : draw(&state, GPUS);
    gy_gate_waiters_fill(&w, gpu, ops, GPUS);
    for (uint32_t at = 0; at <= ops; at += 7) {
        for (uint32_t g = 0; g < GPUS; g++) {
            const uint32_t *found = gy_gate_waiters_from(&w, g, at), *last = gy_gate_waiters_to(&w, g, at);
            for (uint32_t i = at; i < ops && i < at + GY_GATE_AHEAD; i++)
                if (gpu[i] == g)
                    ck_assert(found < last && *found++ == i);
            ck_assert(found == last);
        }
    }
}
END_TEST

START_TEST(nomem)
{
    gantry_schedule *s = drawn(3, costs);
    int failed = 0;
    for (int n = 1; n < 40; n++) {
        gy_gate_times t;
        faults_after(n);
        gantry_status status = gy_gates_predict(s, &t, NULL);
        faults_off();
        failed += status == GANTRY_E_NOMEM;
        ck_assert(status == GANTRY_OK || status == GANTRY_E_NOMEM);
    }
    ck_assert_int_gt(failed, 3);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gates");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, hops);
    tcase_add_test(tests, within);
    tcase_add_test(tests, held_back);
    tcase_add_test(tests, ahead);
    tcase_add_test(tests, behind_what_tells);
    tcase_add_loop_test(tests, copies_that_tell, 0, 3);
    tcase_add_test(tests, most_of_a_launch);
    tcase_add_test(tests, told_alone);
    tcase_add_test(tests, awaited);
    tcase_add_loop_test(tests, longest_ways, 0, 40);
    tcase_add_test(tests, pays);
    tcase_add_test(tests, large_ops);
    tcase_add_loop_test(tests, explained, 0, 3);
    tcase_add_loop_test(tests, waiters, 0, 4);
    tcase_add_test(tests, nomem);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
