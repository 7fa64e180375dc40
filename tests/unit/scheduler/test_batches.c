/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Batches: which launches are put together, what that is predicted to take, and that every schedule with them is right.
 * A product of 4 x 4 matrices has 128 flops; alone it takes 4 us on these machines, and 0.25 us in a batch of many.
 * Times are worked out by hand.
 */
#include "base/text.h"
#include "schedule/check/verify.h"
#include "suite.h"
#include "support/faults.h"
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

#define TABLE(batched)                                                                                                 \
    "{\"kernel\":\"gemm\",\"dtype\":\"f32\",\"kind\":\"g\",\"by\":\"flops\",\"points\":[[128,4],[1024,20]]" batched "}"
#define KNOWN TABLE(",\"batched\":[[128,0.25]]")

/* `gpus` of 1 us for a copy of 64 bytes, or of `copy_us`. */
static gantry_machine *machine(int gpus, const char *kernels, double copy_us, long long capacity)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":%lld}", i, capacity);
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, "%s{\"id\":\"g%d\",\"kind\":\"g\",\"type\":\"gpu\",\"memory\":\"m%d\"}",
                       i ? "," : "],\"devices\":[", i, i);
    gy_text_printf(&t, "],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":%g,\"bandwidth_gbs\":1000}],",
                   copy_us);
    gy_text_printf(&t, "\"kernels\":[%s]}", kernels);
    gantry_machine *m = parse_machine(t.at);
    gy_text_free(&t);
    return m;
}

#define BUFFER(name, cls)                                                                                              \
    "\"" name "\":{\"dtype\":\"f32\",\"shape\":[\"4*n\",4],\"split\":\"n\",\"class\":\"" cls "\","                     \
    "\"init\":{\"random\":{\"seed\":1}}}"
#define STEP(more) "{\"for\":{\"i\":\"n\"},\"id\":\"s[i]\",\"kernel\":\"gemm\",\"args\":{" more "}}"
#define GRAPH(a, nodes)                                                                                                \
    "{\"gantry\":1,\"params\":{\"n\":64},\"buffers\":{" BUFFER("a", a) "," BUFFER("b", "const") "," BUFFER(            \
        "c", "state") "," BUFFER("d", "state") "},\"nodes\":[" nodes "]}"

static const char independent[] = GRAPH("const", STEP("\"a\":\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\""));
static const char uploaded[] = GRAPH("input", STEP("\"a\":\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\""));
static const char chain[] = GRAPH(
    "const", "{\"for\":{\"i\":\"n-1\"},\"id\":\"s[i]\",\"kernel\":\"gemm\",\"args\":{\"a\":\"c[i]\",\"b\":\"b[i]\","
             "\"c\":\"c[i+1]\"}}");
static const char two_levels[] =
    GRAPH("const", STEP("\"a\":\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\"") ",{\"for\":{\"i\":\"n\"},\"id\":\"t[i]\","
                                                                        "\"kernel\":\"gemm\",\"args\":{\"a\":\"c[i]\","
                                                                        "\"b\":\"b[i]\",\"c\":\"d[i]\"}}");
static const char of_two_kinds[] =
    GRAPH("const", STEP("\"a\":\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\"") ",{\"for\":{\"i\":\"n\"},\"id\":\"t[i]\","
                                                                        "\"kernel\":\"gemm\",\"args\":{\"tb\":1,\"a\":"
                                                                        "\"a[i]\",\"b\":\"b[i]\",\"c\":\"d[i]\"}}");
static const char given[] = GRAPH("const", "{\"for\":{\"i\":\"n\"},\"id\":\"s[i]\",\"kernel\":\"gemm\",\"args\":{\"a\":"
                                           "\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\"},\"cost\":{\"time_us\":4}}");
static const char moving[] = GRAPH("const", "{\"for\":{\"i\":\"n\"},\"id\":\"s[i]\",\"kernel\":\"gemm\",\"args\":{"
                                            "\"alpha\":{\"dynamic\":1},\"a\":\"a[i]\",\"b\":\"b[i]\",\"c\":\"c[i]\"}}");

static gantry_graph *parse_graph(const char *text)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_parse(&g, text, strlen(text), "batches", NULL, NULL, &err) == GANTRY_OK, "%s: %s",
                  err.where, err.text);
    return g;
}

typedef struct outcome {
    gy_ticks makespan;
    uint32_t batches, members; /* members: ops in all batches */
} outcome;

static outcome outcome_of(const gantry_schedule *s)
{
    outcome o = { .makespan = s->makespan };
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        o.batches += op->batch > 0;
        o.members += op->batch > 0 || op->joined;
        ck_assert(!op->joined || op->duration == 0);
    }
    ck_assert_int_ge(s->makespan, s->bound);
    return o;
}

static outcome plan(const char *text, gantry_machine *m, const char *policy)
{
    gantry_graph *g = parse_graph(text);
    gantry_schedule *s = schedule(g, m, policy);
    outcome o = outcome_of(s);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
    return o;
}

#define ROOM (1LL << 30)

START_TEST(what_is_ready_at_once_is_one_batch)
{
    outcome o = plan(independent, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 1 && o.members == 64);
    ck_assert_int_eq(o.makespan, 19750000); /* 4 and 63 * 0.25 us */
    o = plan(independent, machine(2, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 2 && o.members == 64);
    ck_assert_int_eq(o.makespan, 11750000); /* 4 and 31 * 0.25 us */
}
END_TEST

START_TEST(nothing_is_batched_that_was_not_measured_to_gain)
{
    outcome o = plan(independent, machine(1, TABLE(""), 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 256000000);
    o = plan(independent, machine(1, TABLE(",\"batched\":[[128,4]]"), 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 256000000);
    o = plan(independent, machine(1, TABLE(",\"batched\":[[127,0.25]]"), 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 256000000);
    o = plan(given, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 256000000);
    o = plan(moving, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 256000000);
}
END_TEST

START_TEST(what_depends_on_each_other_is_in_no_batch)
{
    outcome o = plan(chain, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 0 && o.makespan == 252000000);
    o = plan(two_levels, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 2 && o.members == 128 && o.makespan == 39500000);
}
END_TEST

START_TEST(a_batch_is_of_one_kind)
{
    outcome o = plan(of_two_kinds, machine(1, KNOWN, 1, ROOM), NULL);
    ck_assert(o.batches == 2 && o.members == 128 && o.makespan == 39500000);
}
END_TEST

/* Uploads come one after another. Where they are far apart nobody waits for the next. */
START_TEST(a_batch_is_not_worth_a_long_wait)
{
    outcome far = plan(uploaded, machine(1, KNOWN, 100, ROOM), "single");
    outcome plain = plan(uploaded, machine(1, TABLE(""), 100, ROOM), "single");
    ck_assert(far.makespan <= plain.makespan);
    outcome near = plan(uploaded, machine(1, KNOWN, 0.01, ROOM), "single");
    plain = plan(uploaded, machine(1, TABLE(""), 0.01, ROOM), "single");
    ck_assert(near.batches > 0 && near.makespan * 4 < plain.makespan);
}
END_TEST

/* Queries, keys and values of one row, on a GPU of which nothing was measured: in three lanes their launches overlap by
 * prediction, and a batch is told 0.2 us longer; but two launches more take 0.36 us where they overlap (a fork and join
 * of four took an H200 2 us more than one launch). Large products, which take nine tenths of the speed in a batch, stay
 * alone: that is 10 ms longer. */
START_TEST(launches_that_overlap_are_not_for_nothing)
{
    static const struct {
        int rows, side;
        uint32_t launches;
    } cases[] = { { 1, 64, 3 }, { 1, 1024, 3 }, { 8192, 8192, 0 } };
    gantry_machine *m = parse_machine("{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"64GiB\"},{"
                                      "\"id\":\"m\",\"capacity\":\"64GiB\"}],"
                                      "\"devices\":[{\"id\":\"g\",\"kind\":\"g\",\"type\":\"gpu\",\"memory\":\"m\","
                                      "\"lanes\":4,\"launch_us\":4,\"gflops\":"
                                      "{\"f32\":60000},\"bandwidth_gbs\":4800}],\"routes\":[{\"from\":\"*\",\"to\":\"*"
                                      "\",\"latency_us\":1,\"bandwidth_gbs\":1000}]}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gy_text t = { 0 };
        gy_text_printf(&t, "{\"gantry\":1,\"params\":{\"r\":%d,\"w\":%d},\"buffers\":{", cases[i].rows, cases[i].side);
        for (const char *b = "qkv"; *b; b++)
            gy_text_printf(&t,
                           "\"w%c\":{\"dtype\":\"f32\",\"shape\":[\"w\",\"w\"],\"class\":\"const\",\"init\":1},\"%c\":{"
                           "\"dtype\":\"f32\",\"shape\":[\"r\",\"w\"]},",
                           *b, *b);
        gy_text_add(&t, "\"x\":{\"dtype\":\"f32\",\"shape\":[\"r\",\"w\"],\"class\":\"state\",\"init\":1},\"g\":{"
                        "\"dtype\":\"f32\",\"shape\":[\"w\"],\"class\":\"const\",\"init\":1},"
                        "\"n\":{\"dtype\":\"f32\",\"shape\":[\"r\",\"w\"]}},\"nodes\":[{\"id\":\"norm\",\"kernel\":"
                        "\"rmsnorm\",\"args\":{\"x\":\"x\",\"gain\":\"g\",\"y\":\"n\"}},");
        for (const char *b = "qkv"; *b; b++)
            gy_text_printf(&t, "{\"id\":\"%c\",\"kernel\":\"gemm\",\"args\":{\"a\":\"n\",\"b\":\"w%c\",\"c\":\"%c\"}},",
                           *b, *b, *b);
        gy_text_add(&t, "{\"id\":\"x\",\"map\":{\"x\":\"q + k * "
                        "v\"},\"args\":{\"q\":\"q\",\"k\":\"k\",\"v\":\"v\",\"x\":\"x\"}}]}");
        gantry_graph *g = parse_graph(t.at);
        gantry_schedule *s = schedule(g, m, "heft");
        ck_assert_msg(op_of(s, "q")->batch == cases[i].launches, "%d rows of %d: a batch of %u", cases[i].rows,
                      cases[i].side, op_of(s, "q")->batch);
        gantry_schedule_free(s);
        gantry_graph_free(g);
        gy_text_free(&t);
    }
    gantry_machine_free(m);
}
END_TEST

START_TEST(starts_that_overlap_have_no_batches)
{
    gantry_graph *g = parse_graph(two_levels);
    gantry_machine *m = machine(2, KNOWN, 1, ROOM);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s;
    gantry_error err = { 0 };
    o.objective = "period";
    ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert(s->in_flight == 1 || outcome_of(s).batches == 0);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    gantry_graph *g = parse_graph(two_levels);
    gantry_machine *m = machine(1, KNOWN, 1, ROOM);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err = { 0 };
    int n = -1;
    o.policy = "heft";
    o.effort = 0;
    for (bool failed = true; failed;) {
        gantry_schedule *s = NULL;
        faults_after(++n);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s", n, err.text);
        ck_assert(failed || outcome_of(s).batches == 2);
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(n, 100);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- random graphs ---- */

typedef struct numbers {
    uint64_t state;
} numbers;

static uint32_t below(numbers *n, uint32_t limit)
{
    n->state = n->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(n->state >> 33) % limit;
}

/* Products of what earlier ones made, sums, products of another kind, and fills, over 12 matrices. */
static gantry_graph *random_products(uint64_t seed)
{
    numbers n = { seed * 977 + 5 };
    gy_text t = { 0 };
    gy_text_add(
        &t, "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[48,4],\"split\":12,\"init\":1,\"class\":");
    gy_text_printf(&t, "\"%s\",\"output\":true}},\"nodes\":[", below(&n, 2) ? "state" : "input");
    uint32_t count = 6 + below(&n, 40);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = below(&n, 12), b = below(&n, 12), c = below(&n, 12), kind = below(&n, 8);
        c = c == a || c == b ? (c + 1) % 12 : c;
        c = c == a || c == b ? (c + 1) % 12 : c;
        gy_text_printf(&t, "%s{\"id\":\"n%u\",", i ? "," : "", i);
        if (kind == 0) {
            gy_text_printf(&t, "\"fill\":{\"to\":\"x[%u]\",\"value\":0.25}}", c);
            continue;
        }
        if (i && below(&n, 6) == 0)
            gy_text_printf(&t, "\"after\":[\"n%u\"],", below(&n, i));
        gy_text_printf(&t,
                       "\"kernel\":\"gemm\",%s\"args\":{\"alpha\":%s,\"a\":\"x[%u]\",\"b\":\"x[%u]\",\"c\":\"x[%u]\"}}",
                       kind == 1 ? "\"access\":{\"c\":\"sum\"}," : "", kind == 2 ? "0.5" : "0.125", a, b, c);
    }
    gy_text_add(&t, "]}");
    gantry_graph *g = parse_graph(t.at);
    gy_text_free(&t);
    return g;
}

static void run_on_host(gantry_schedule *s, gantry_graph *g, float *to)
{
    gantry_run *r;
    gantry_error err = { 0 };
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    float x[48 * 4];
    uint64_t ticket;
    gantry_buffer buffer_x = gantry_graph_find_buffer(g, "x");
    for (int i = 0; i < 48 * 4; i++)
        x[i] = (float)(i % 7) / 8;
    o.backend = "host";
    ck_assert_msg(gantry_run_new(&r, s, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_run_bind(r, buffer_x, x, sizeof x, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_run_bind_output(r, buffer_x, to, sizeof x, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_run_start(r, &ticket, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_run_wait(r, ticket, &err) == GANTRY_OK, "%s", err.text);
    gantry_run_free(r);
}

static gantry_schedule *try_schedule(gantry_graph *g, const gantry_machine *m)
{
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.effort = 1;
    gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_CAPACITY, "%s", err.text);
    ck_assert_msg(status || gy_schedule_verify(s, g, &err) == GANTRY_OK, "%s", err.text);
    return status ? NULL : s;
}

/* Every schedule is right (the checker says so), gives what one without batches gives, and is not faster than the
 * bound; some have batches. Little memory: some fit only without. */
START_TEST(random_graphs_are_right_with_batches)
{
    static const long long capacity[] = { 1 << 20, 2560, 3072 };
    uint32_t batches = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        gantry_graph *g = random_products(seed * 3 + (uint64_t)_i);
        gantry_machine *m = machine(1 + (int)(seed % 3), KNOWN, 0.5, capacity[_i]),
                       *plain = machine(1, TABLE(""), 0.5, ROOM);
        gantry_schedule *s = try_schedule(g, m), *other = schedule(g, plain, "single");
        float found[48 * 4], wanted[48 * 4];
        if (s) {
            batches += outcome_of(s).batches;
            run_on_host(s, g, found);
            run_on_host(other, g, wanted);
            for (int i = 0; i < 48 * 4; i++)
                ck_assert_float_eq_tol(found[i], wanted[i], 1e-4f * (1 + (wanted[i] < 0 ? -wanted[i] : wanted[i])));
        }
        gantry_schedule_free(s);
        gantry_schedule_free(other);
        gantry_machine_free(m);
        gantry_machine_free(plain);
        gantry_graph_free(g);
    }
    ck_assert_uint_gt(batches, 20);
}
END_TEST

/* ---- copies ---- */

/* `count` arrays of 4 bytes for one node; a copy takes 2 us, the launch of a kernel `launch_us`. */
static outcome plan_copies(int count, double launch_us, const char *pinned)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < count; i++)
        gy_text_printf(&t, "%s\"x%d\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":1}", i ? "," : "", i);
    gy_text_add(&t, "},\"nodes\":[{\"id\":\"n\",\"work\":{},\"cost\":{\"time_us\":1},\"reads\":[");
    for (int i = 0; i < count; i++)
        gy_text_printf(&t, "%s\"x%d\"", i ? "," : "", i);
    gy_text_add(&t, "]}]}");
    char machine_text[512];
    snprintf(
        machine_text, sizeof machine_text,
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"%s},{\"id\":\"m\",\"capacity\":"
        "\"1GiB\"}],\"devices\":[{\"id\":\"g\",\"type\":\"gpu\",\"memory\":\"m\",\"copy_engines\":1,\"launch_us\":%g}],"
        "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":2,\"bandwidth_gbs\":1000}]}",
        pinned, launch_us);
    outcome o = plan(t.at, parse_machine(machine_text), NULL);
    gy_text_free(&t);
    return o;
}

#define PINNED ",\"pinned\":true"

START_TEST(small_copies_are_few_batches)
{
    outcome alone = plan_copies(100, 3, ""), o = plan_copies(100, 3, PINNED);
    ck_assert(alone.batches == 0 && o.batches == 2 && o.members == 100);
    ck_assert_int_ge(alone.makespan, 200 * (gy_ticks)1000000);
    /* two launches, two latencies, next to no bytes, and the node */
    ck_assert_int_ge(o.makespan, 10 * (gy_ticks)1000000);
    ck_assert_int_le(o.makespan, 15 * (gy_ticks)1000000);
}
END_TEST

/* Whatever a launch takes, and however few there are. */
START_TEST(batches_of_copies_never_take_longer)
{
    for (double us = 0.5; us < 300; us *= 2)
        ck_assert_int_le(plan_copies(_i, us, PINNED).makespan, plan_copies(_i, us, "").makespan);
    ck_assert_uint_eq(plan_copies(_i, 2 * _i + 2, PINNED).batches, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler: batches");
    TCase *c = tcase_create("batches");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, what_is_ready_at_once_is_one_batch);
    tcase_add_test(c, nothing_is_batched_that_was_not_measured_to_gain);
    tcase_add_test(c, what_depends_on_each_other_is_in_no_batch);
    tcase_add_test(c, a_batch_is_of_one_kind);
    tcase_add_test(c, a_batch_is_not_worth_a_long_wait);
    tcase_add_test(c, launches_that_overlap_are_not_for_nothing);
    tcase_add_test(c, starts_that_overlap_have_no_batches);
    tcase_add_test(c, every_allocation_may_fail);
    tcase_add_loop_test(c, random_graphs_are_right_with_batches, 0, 3);
    tcase_add_test(c, small_copies_are_few_batches);
    tcase_add_loop_test(c, batches_of_copies_never_take_longer, 1, 20);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
