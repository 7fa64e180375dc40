/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that send: which copies to another GPU a launch stores itself, and which are packets. What workers are given
 * is read from the memory of emulated GPUs, by kernels/resident/resident.h alone; how many there must be follows from
 * each graph. Results are the host's, bit for bit.
 */
#include "control.h"
#include "packets.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384, MOST_OPS = 256, STEPS = 4 };

/* ---- what workers were given ---- */

typedef struct programs {
    int sends;
    bool packet[MOST_OPS]; /* of each op: it has one */
} programs;

static void add_packet(void *to, int device, int worker, const gy_resident_packet *packet)
{
    programs *p = to;
    (void)device;
    (void)worker;
    ck_assert_uint_lt(packet->op, MOST_OPS);
    ck_assert_uint_le(packet->sends, GY_RESIDENT_SENDS);
    p->packet[packet->op] = true;
    p->sends += packet->sends;
}

static programs read_programs(int gpus)
{
    programs p = { 0 };
    each_packet(gpus, add_packet, &p);
    return p;
}

/* ---- what they should be given ---- */

static bool is_between_gpus(const gantry_schedule *s, const gy_op *op)
{
    uint32_t device[2];
    for (int k = 0; k < 2 && gy_op_is_copy(op); k++)
        device[k] = s->instances.at[s->use.at[op->use + (uint32_t)k].instance].memory;
    return gy_op_is_copy(op) && device[0] != device[1] && device[0] > 0 && device[1] > 0; /* 0: the host's */
}

static bool waits(const gantry_schedule *s, uint32_t op)
{
    for (size_t i = 0; i < s->counters.wait.count; i++)
        if (s->counters.wait.at[i].op == op)
            return true;
    return false;
}

typedef struct found {
    int copies, sent, waiting; /* between GPUs; those without a packet; those that wait for a counter */
} found;

/* Runs the graph, and compares results with the host's; no copy is both sent and a packet, and none is neither. */
static found look_at(gantry_graph *g, int gpus, uint64_t seed)
{
    found f = { 0 };
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed(seed);
    gantry_machine *m = small_machine(gpus, 1, 1);
    gantry_schedule *s = make_schedule(g, m, "device", NULL);
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    for (int start = 0; start < 3; start++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        ck_assert_msg(same(&wanted, &got), "start %d", start);
    }
    ck_assert_msg(strncmp(replay_of(run), "device", 6) == 0, "%s", replay_of(run));
    programs p = read_programs(gpus);
    ck_assert_uint_lt(s->ops.count, MOST_OPS);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        bool copy = is_between_gpus(s, &s->ops.at[i]), waiting = copy && waits(s, i);
        f.copies += copy;
        f.sent += copy && !p.packet[i];
        f.waiting += waiting;
        ck_assert_msg(!waiting || p.packet[i], "op %u waits for a counter, and a launch sends it", i);
    }
    ck_assert_int_eq(p.sends, f.sent);
    gantry_run_free(host);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return f;
}

/* ---- graphs ---- */

#define F32(name, length, more) "\"" name "\":{\"dtype\":\"f32\",\"shape\":[" #length "]" more "}"
#define STATE                   ",\"class\":\"state\",\"init\":\"iota\",\"output\":true"

typedef struct draft {
    char buffers[TEXT / 2], nodes[TEXT / 2];
} draft;

/* Appends to one of the two, with a comma between. */
static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    va_list list;
    size_t at = strlen(text), room = sizeof((draft *)NULL)->nodes - at;
    va_start(list, format);
    int length = snprintf(text + at, room, "%s", at ? "," : "");
    ck_assert_int_lt(vsnprintf(text + at + length, room - (size_t)length, format, list), (int)room - length);
    va_end(list);
}

/* Its nodes STEPS times. */
static gantry_graph *parse(const draft *d)
{
    char text[TEXT + 100];
    gantry_graph *g = NULL;
    int length =
        snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{%s},\"nodes\":[{\"repeat\":%d,\"nodes\":[%s]}]}",
                 d->buffers, STEPS, d->nodes);
    MUST(gantry_graph_parse(&g, text, (size_t)length, "graph of the test", NULL, NULL, MUST_ERR));
    return g;
}

/* Two GPUs hand an array to and fro: whoever has it makes the other's. */
static gantry_graph *to_and_fro(const char *kernel, const char *dtype, int length)
{
    draft d = { "", "" };
    for (int k = 0; k < 2; k++) {
        add(d.buffers, "\"%s\":{\"dtype\":\"%s\",\"shape\":[%d]%s}", k ? "v" : "u", dtype, length,
            k ? ",\"output\":true" : STATE);
        add(d.nodes, "{\"id\":\"hand%d\",\"kernel\":\"%s\",\"on\":\"gpu%d\",\"args\":{\"x\":\"%s\",\"y\":\"%s\"}}", k,
            kernel, k, k ? "v" : "u", k ? "u" : "v");
    }
    return parse(&d);
}

/* One GPU makes an array for so many others, and takes in what each of them makes of it. */
static gantry_graph *to_many(int others)
{
    draft d = { F32("x", 256, STATE) "," F32("y", 256, ""), "" };
    add(d.nodes, "{\"id\":\"give\",\"kernel\":\"scale\",\"on\":\"gpu0\",\"args\":{\"a\":0.5,\"x\":\"x\",\"y\":\"y\"}}");
    for (int i = 1; i <= others; i++) {
        add(d.buffers, "\"z%d\":{\"dtype\":\"f32\",\"shape\":[256]}", i);
        add(d.nodes,
            "{\"id\":\"turn%d\",\"kernel\":\"scale\",\"on\":\"gpu%d\",\"args\":{\"a\":%d,\"x\":\"y\",\"y\":\"z%d\"}}",
            i, i, i, i);
    }
    for (int i = 1; i <= others; i++)
        add(d.nodes,
            "{\"id\":\"take%d\",\"kernel\":\"axpby\",\"on\":\"gpu0\",\"args\":{\"a\":0.25,\"x\":\"z%d\",\"b\":0.5,"
            "\"y\":\"x\"}}",
            i, i);
    return parse(&d);
}

/* One GPU makes an array of which the other reads so many pieces, from `first` on; it takes in what becomes of each. */
static gantry_graph *pieces(int count, int first)
{
    enum { PIECE = 64 };
    draft d = { F32("x", 512, STATE) "," F32("y", 512, ""), "" };
    add(d.nodes, "{\"id\":\"give\",\"kernel\":\"scale\",\"on\":\"gpu0\",\"args\":{\"a\":0.5,\"x\":\"x\",\"y\":\"y\"}}");
    for (int i = 0; i < count; i++) {
        int from = first + 2 * PIECE * i;
        add(d.buffers, "\"z%d\":{\"dtype\":\"f32\",\"shape\":[%d]}", i, PIECE);
        add(d.nodes,
            "{\"id\":\"turn%d\",\"kernel\":\"scale\",\"on\":\"gpu1\",\"args\":{\"a\":3,\"x\":\"y{%d:%d}\",\"y\":\"z%"
            "d\"}}",
            i, from, from + PIECE, i);
    }
    for (int i = 0; i < count; i++)
        add(d.nodes,
            "{\"id\":\"take%d\",\"kernel\":\"axpby\",\"on\":\"gpu0\",\"args\":{\"a\":0.25,\"x\":\"z%d\",\"b\":0.5,"
            "\"y\":\"x{%d:%d}\"}}",
            i, i, PIECE * i, PIECE * i + PIECE);
    return parse(&d);
}

/* The second GPU sums up what the first makes, which hears nothing of it: so a copy waits until the sum before has been
 * made. */
static gantry_graph *one_way(void)
{
    static const draft d = {
        F32("x", 256, STATE) "," F32("y", 256, STATE) "," F32("z", 256, STATE),
        "{\"id\":\"turn\",\"kernel\":\"axpby\",\"on\":\"gpu0\",\"args\":{\"a\":0.5,\"x\":\"x\",\"b\":0.5,\"y\":\"y\"}},"
        "{\"id\":\"sum\",\"kernel\":\"axpby\",\"on\":\"gpu1\",\"args\":{\"a\":1,\"x\":\"y\",\"b\":0.5,\"y\":\"z\"}}"
    };
    return parse(&d);
}

/* A GPU makes an array and copies it within its memory. */
static gantry_graph *copied_at_home(void)
{
    static const draft d = {
        F32("x", 256, STATE) "," F32("y", 256, "") "," F32("z", 256, STATE),
        "{\"id\":\"make\",\"kernel\":\"scale\",\"on\":\"gpu0\",\"args\":{\"a\":0.5,\"x\":\"x\",\"y\":\"y\"}},"
        "{\"id\":\"keep\",\"on\":\"gpu0\",\"copy\":{\"from\":\"y\",\"to\":\"z\"}},"
        "{\"id\":\"step\",\"kernel\":\"axpby\",\"on\":\"gpu0\",\"args\":{\"a\":0.5,\"x\":\"z\",\"b\":0.25,\"y\":\"x\"}}"
    };
    return parse(&d);
}

/* ---- tests ---- */

enum { SEEDS = 4 };

static void check(gantry_graph *g, int gpus, int seed, int copies, int sent)
{
    found f = look_at(g, gpus, (uint64_t)seed + 1);
    ck_assert_msg(f.copies == copies && f.sent == sent, "%d of %d copies are sent, not %d of %d", f.sent, f.copies,
                  sent, copies);
}

static const struct {
    const char *kernel, *dtype;
    int length;
    bool sends;
} handed[] = {
    { "copy", "f32", 256, true },  { "copy", "f64", 128, true },
    { "copy", "u8", 4096, true },  { "copy", "i32", 256, false }, /* a function that does not send */
    { "relu", "f32", 256, false }, { "copy", "f32", 4, true },    /* 16 bytes, and not a multiple of them */
    { "copy", "f32", 258, false },
};
enum { HANDED = sizeof handed / sizeof *handed };

/* An array is handed on twice a step. The last time, it is for the next start, where no launch is ahead of the copy. */
START_TEST(functions)
{
    for (int seed = 0; seed < SEEDS; seed++)
        check(to_and_fro(handed[_i].kernel, handed[_i].dtype, handed[_i].length), 2, seed, 2 * STEPS,
              handed[_i].sends ? 2 * STEPS - 1 : 0);
}
END_TEST

/* A launch sends two copies. What the others make of them, each sends back. */
START_TEST(copies_of_a_launch)
{
    int sent = _i < GY_RESIDENT_SENDS ? _i : GY_RESIDENT_SENDS;
    for (int seed = 0; seed < SEEDS; seed++)
        check(to_many(_i), 1 + _i, seed, 2 * _i * STEPS, (sent + _i) * STEPS);
}
END_TEST

/* Also where they are of pieces. What the second GPU makes of several, it copies when all are made, and the last launch
 * stores no other piece than its own, which is not the first to be copied. */
START_TEST(copies_of_pieces)
{
    for (int seed = 0; seed < SEEDS; seed++) {
        check(pieces(1, 0), 2, seed, 2 * STEPS, 2 * STEPS);
        check(pieces(2, 0), 2, seed, 4 * STEPS, 2 * STEPS);
        check(pieces(3, 0), 2, seed, 6 * STEPS, 2 * STEPS);
        check(pieces(1, 1), 2, seed, 2 * STEPS, STEPS); /* the piece begins at no multiple of 16 bytes */
    }
}
END_TEST

START_TEST(copies_that_wait)
{
    for (int seed = 0; seed < SEEDS; seed++) {
        found f = look_at(one_way(), 2, (uint64_t)seed + 1);
        ck_assert_int_eq(f.copies, STEPS);
        ck_assert_int_eq(f.waiting, STEPS);
        ck_assert_int_eq(f.sent, 0);
    }
}
END_TEST

START_TEST(copies_at_home)
{
    check(copied_at_home(), 1, 0, 0, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launches that send");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, functions, 0, HANDED);
    tcase_add_loop_test(tests, copies_of_a_launch, 1, 5);
    tcase_add_test(tests, copies_of_pieces);
    tcase_add_test(tests, copies_that_wait);
    tcase_add_test(tests, copies_at_home);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
