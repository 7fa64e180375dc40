/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that leave a part of their GPU to others: what the machine measured of their kernel, what the graph says, what
 * the blocks of a user's launch tell. Times are worked out by hand: n ops at once that take a part s of the device, and
 * t alone, take the longer of t and n s t. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

/* saxpy has 2 flops an element: 64 of them take 10 us, 128 take 20. The GPU has eight multiprocessors. */
#define MACHINE(share, kind)                                                                                           \
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m\",\"capacity\":\"1GiB\"}" \
    "],"                                                                                                               \
    "\"devices\":[{\"id\":\"g\",\"type\":\"" kind "\",\"memory\":\"m\",\"lanes\":4,\"kind\":\"k\","                    \
    "\"multiprocessors\":8,\"launch_us\":1}],"                                                                         \
    "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":1000}],"                                               \
    "\"kernels\":[{\"kernel\":\"saxpy\",\"dtype\":\"f32\",\"kind\":\"k\",\"by\":\"flops\","                            \
    "\"points\":[[64,10],[128,20]]" share "}]}"

static gantry_graph *parse(const char *format, const char *more)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    char text[4096];
    options.allow_code = 1;
    snprintf(text, sizeof text, format, more);
    gantry_status status =
        gantry_graph_parse(&g, text, strlen(text), "shares", GANTRY_SOURCE_DIR "/tests/bench/hand", &options, &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s", err.where, err.text);
    return g;
}

/* Four nodes of 64 flops that have nothing to do with each other. */
static gantry_graph *four(const char *share)
{
    return parse("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[128],\"class\":\"state\",\"init\":1},"
                 "\"y\":{\"dtype\":\"f32\",\"shape\":[128],\"class\":\"state\",\"init\":1}},\"nodes\":["
                 "{\"id\":\"n[i]\",\"for\":{\"i\":4},\"kernel\":\"saxpy\"%s,"
                 "\"args\":{\"a\":2,\"x\":\"x{32*i:32*i+32}\",\"y\":\"y{32*i:32*i+32}\"}}]}",
                 share);
}

static void check(const char *machine, const char *share, double us, uint32_t lanes, uint32_t spare)
{
    gantry_machine *m = parse_machine(machine);
    gantry_graph *g = four(share);
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(us));
    ck_assert_int_le(s->bound, s->makespan);
    ck_assert_uint_eq(s->lanes.count, lanes);
    ck_assert_uint_eq(op_of(s, "n[0]")->spare, spare);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

START_TEST(as_measured)
{
    check(MACHINE("", "gpu"), "", 40, 4, 0); /* nothing is known: they may overlap */
    check(MACHINE(",\"share\":[0.5,1]", "gpu"), "", 20, 4, 500);
    check(MACHINE(",\"share\":[0.25,1]", "gpu"), "", 10, 4, 750);
    check(MACHINE(",\"share\":[0.125,1]", "gpu"), "", 10, 4, 875);
    check(MACHINE(",\"share\":[1,0.5]", "gpu"), "", 40, 4, 0); /* of 64 flops it is all of the device */
}
END_TEST

/* The figure of the graph goes before what was measured. */
START_TEST(as_the_graph_says)
{
    check(MACHINE("", "gpu"), ",\"share\":0.5", 20, 4, 500);
    check(MACHINE(",\"share\":[0.125,1]", "gpu"), ",\"share\":0.5", 20, 4, 500);
}
END_TEST

/* A CPU computes one op at a time. */
START_TEST(on_a_cpu)
{
    check(MACHINE(",\"share\":[0.25,1]", "cpu"), "", 40, 1, 750);
}
END_TEST

/* An op that fills the device is not put behind ops that leave some of it, nor before others in their lane. */
START_TEST(full_ones_are_in_lanes_of_their_own)
{
    gantry_machine *m = parse_machine(MACHINE(",\"share\":[0.25,1]", "gpu"));
    gantry_graph *g =
        parse("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[256],\"class\":\"state\",\"init\":1},"
              "\"y\":{\"dtype\":\"f32\",\"shape\":[256],\"class\":\"state\",\"init\":1}},\"nodes\":["
              "{\"id\":\"full\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{0:64}\",\"y\":\"y{0:64}\"}},"
              "{\"id\":\"part\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x{64:96}\",\"y\":\"y{64:96}\"}}%s]}",
              "");
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->lanes.count, 2);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(22.5)); /* 20 of all, 10 of a quarter: 22.5 at least */
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* A chain of three beside six others of the same length as one: the chain is what the end waits for. */
START_TEST(urgent_ones)
{
    gantry_machine *m = parse_machine(MACHINE(",\"share\":[0.25,1]", "gpu"));
    gantry_graph *g =
        parse("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[224],\"class\":\"state\",\"init\":1},"
              "\"y\":{\"dtype\":\"f32\",\"shape\":[224],\"class\":\"state\",\"init\":1}},\"nodes\":["
              "{\"id\":\"other[i]\",\"for\":{\"i\":6},\"kernel\":\"saxpy\","
              "\"args\":{\"a\":2,\"x\":\"x{32*i:32*i+32}\",\"y\":\"y{32*i:32*i+32}\"}},"
              "{\"id\":\"chain[i]\",\"for\":{\"i\":3},\"kernel\":\"saxpy\","
              "\"args\":{\"a\":2,\"x\":\"x{192:224}\",\"y\":\"y{192:224}\"}}%s]}",
              "");
    gantry_schedule *s = schedule(g, m, NULL);
    uint32_t urgent = s->op_lane.at[op_of(s, "chain[0]")->lane];
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(30));
    for (uint32_t i = 0; i < s->lanes.count; i++)
        ck_assert(s->lanes.at[i].urgent == (i == urgent));
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        bool chain = strncmp(g->nodes.at[op->node].id, "chain", 5) == 0;
        ck_assert(chain == (s->op_lane.at[op->lane] == urgent));
    }
    char *text = schedule_text(s);
    gantry_schedule *again = NULL;
    ck_assert_int_eq(gantry_schedule_parse(&again, text, strlen(text), "again", NULL), GANTRY_OK);
    ck_assert(again->lanes.at[urgent].urgent);
    gantry_free(text);
    gantry_schedule_free(again);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Four lanes with a workspace of 4 KiB each, beside 1 KiB of buffers; where there is less, one lane has it. */
START_TEST(workspaces)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_machine *m = parse_machine(MACHINE(",\"share\":[0.25,1],\"scratch\":4096", "gpu"));
    gantry_graph *g = four("");
    static const struct {
        const char *memory;
        uint32_t lanes;
    } cases[] = { { "g=18KiB", 4 }, { "g=16KiB", 1 }, { "g=6KiB", 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_schedule *s = NULL;
        gantry_error err = { 0 };
        o.max_memory = cases[i].memory;
        ck_assert_msg(gantry_schedule_new(&s, g, m, &o, &err) == GANTRY_OK, "%s: %s", o.max_memory, err.text);
        ck_assert_uint_eq(s->lanes.count, cases[i].lanes);
        gantry_schedule_free(s);
    }
    o.max_memory = "g=4KiB";
    refusal(g, m, &o, GANTRY_E_CAPACITY);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

/* Two blocks are on two multiprocessors of eight, eight of them on all; without CUDA code nothing is known. */
START_TEST(blocks_of_a_launch)
{
    static const struct {
        const char *launch;
        uint32_t spare;
    } cases[] = { { "\"grid\":[2],\"block\":[32]", 750 },
                  { "\"grid\":[\"n\",2],\"block\":[32]", 250 },
                  { "\"grid\":[2,2,2],\"block\":[1]", 0 },
                  { "\"grid\":[1000000,65535],\"block\":[1]", 0 } };
    gantry_machine *m = parse_machine(MACHINE("", "gpu"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_graph *g =
            parse("{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[8],\"class\":\"state\","
                  "\"init\":1}},\"kernels\":{\"mine\":{\"cuda\":\"lu_kernels.cu\",\"entry\":\"mine\",\"args\":["
                  "{\"name\":\"x\",\"access\":\"readwrite\",\"dtype\":\"f32\"},{\"name\":\"n\",\"type\":"
                  "\"i64\"}],\"launch\":{%s},\"cost\":{\"flops\":1000}}},"
                  "\"nodes\":[{\"id\":\"n\",\"kernel\":\"mine\",\"args\":{\"x\":\"x\",\"n\":3}}]}",
                  cases[i].launch);
        gantry_schedule *s = schedule(g, m, NULL);
        ck_assert_uint_eq(op_of(s, "n")->spare, cases[i].spare);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shares");
    TCase *t = tcase_create("shares");
    tcase_add_test(t, as_measured);
    tcase_add_test(t, as_the_graph_says);
    tcase_add_test(t, on_a_cpu);
    tcase_add_test(t, full_ones_are_in_lanes_of_their_own);
    tcase_add_test(t, urgent_ones);
    tcase_add_test(t, workspaces);
    tcase_add_test(t, blocks_of_a_launch);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
