/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Collectives of one rank have a place, which `on`, `with` and `apart` are about; those of several ranks have none. An
 * algorithm that does not know a kind is refused on every machine. And whatever is asked of collectives, on devices
 * that share memories or not: a schedule that the checker passes, or a refusal that blames the graph or the machine.
 */
#include "schedule/check/verify.h"
#include "suite.h"

#include "base/map.h"
#include "base/text.h"
#include "graph/build/build.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gantry_graph *g;
static gantry_machine *m;
static gantry_schedule *s;

static void begin(gantry_machine *machine)
{
    g = gantry_graph_new("ranks");
    m = machine;
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* A sum over one rank, of rows that `writer` writes. */
static gantry_node one_rank(const char *id, gantry_node writer)
{
    char name[24];
    snprintf(name, sizeof name, "x%s", id);
    gantry_region x = gantry_all(buffer(g, name, 16));
    gantry_node_write(g, writer, x);
    snprintf(name, sizeof name, "y%s", id);
    gantry_region y = gantry_all(buffer(g, name, 16));
    gantry_buffer_output(g, y.buffer);
    return gantry_graph_collective(g, id, GANTRY_ALL_REDUCE, GANTRY_SUM, 1, &x, 1, &y, 0);
}

static const char *const policies[] = { "heft", "round-robin", "min-min", "etf", "partition", NULL };
#define POLICIES ((int)(sizeof policies / sizeof *policies))

START_TEST(one_rank_is_where_on_says)
{
    begin(virtual_machine(3));
    gantry_node w = work(g, "w", 5);
    gantry_node_on(g, w, "dev0");
    gantry_node_on(g, one_rank("c", w), "dev2");
    s = schedule(g, m, policies[_i]);
    ck_assert_str_eq(device_of(s, "w"), "dev0");
    ck_assert_str_eq(device_of(s, "c"), "dev2");
    end();
}
END_TEST

START_TEST(one_rank_is_with_its_partner)
{
    begin(virtual_machine(3));
    gantry_node w = work(g, "w", 5), p = work(g, "p", 5);
    gantry_node_on(g, w, "dev0");
    gantry_node c = one_rank("c", w);
    gantry_node_with(g, c, p);
    gantry_node_on(g, p, "dev1");
    s = schedule(g, m, policies[_i]);
    ck_assert_str_eq(device_of(s, "c"), "dev1");
    end();
}
END_TEST

START_TEST(one_rank_is_apart)
{
    begin(virtual_machine(2));
    gantry_node w = work(g, "w", 5);
    gantry_node_on(g, w, "dev1");
    gantry_node_apart(g, one_rank("c", w), w);
    s = schedule(g, m, policies[_i]);
    ck_assert_str_eq(device_of(s, "c"), "dev0");
    end();
}
END_TEST

START_TEST(wishes_of_one_rank_that_cannot_be_are_refused)
{
    begin(virtual_machine(1));
    gantry_node w = work(g, "w", 5);
    gantry_node_apart(g, one_rank("c", w), w);
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_UNSUPPORTED),
                     "no device of machine \"host-1\" is left for node \"c\" with what it is kept apart from; use more "
                     "devices or drop some \"apart\"");
    end();
    begin(virtual_machine(2));
    gantry_node_on(g, one_rank("c", work(g, "w", 5)), "gpu");
    ck_assert_ptr_nonnull(strstr(refusal(g, m, NULL, GANTRY_E_GRAPH), "on \"gpu\" of node \"c\" is no device id"));
    end();
}
END_TEST

/* Several ranks, kept away from a node on the only device, and a chain of `with` through them. */
START_TEST(several_ranks_have_no_place)
{
    begin(virtual_machine(1));
    gantry_buffer x = buffer(g, "x", 32);
    gantry_buffer_output(g, x);
    gantry_region r[2] = { gantry_rows(x, 0, 16), gantry_rows(x, 16, 32) };
    gantry_node a = work(g, "a", 5), b = work(g, "b", 5);
    gantry_node_write(g, a, gantry_all(x));
    gantry_node c = gantry_graph_collective(g, "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, r, 2, r, 0);
    gantry_node_on(g, c, "nowhere");
    gantry_node_apart(g, c, a);
    gantry_node_with(g, c, b);
    s = schedule(g, m, policies[_i]);
    static const char *const keys[] = { "on", "with", "apart" };
    gantry_error warning;
    for (size_t i = 0; i < 3; i++) {
        char text[40];
        ck_assert(gantry_graph_warning(g, i, &warning));
        snprintf(text, sizeof text, "\"%s\" of node \"c\" says nothing", keys[i]);
        ck_assert_msg(strstr(warning.text, text) == warning.text, "%s", warning.text);
    }
    ck_assert(!gantry_graph_warning(g, 3, &warning));
    end();
    begin(virtual_machine(2));
    a = work(g, "a", 5);
    b = work(g, "b", 5);
    x = buffer(g, "x", 32);
    gantry_node_write(g, a, gantry_all(x));
    c = gantry_graph_collective(g, "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2,
                                (gantry_region[]){ gantry_rows(x, 0, 16), gantry_rows(x, 16, 32) }, 2,
                                (gantry_region[]){ gantry_rows(x, 0, 16), gantry_rows(x, 16, 32) }, 0);
    gantry_node_with(g, a, c);
    gantry_node_with(g, b, c);
    gantry_node_apart(g, b, a); /* they are together by nothing but the collective */
    s = schedule(g, m, policies[_i]);
    ck_assert_str_ne(device_of(s, "a"), device_of(s, "b"));
    end();
}
END_TEST

/* ---- results are where ranks are ---- */

static const gantry_collective kinds[] = { GANTRY_REDUCE,    GANTRY_REDUCE_SCATTER, GANTRY_SCATTER,   GANTRY_ALL_TO_ALL,
                                           GANTRY_BROADCAST, GANTRY_GATHER,         GANTRY_ALL_REDUCE };
enum { KINDS = sizeof kinds / sizeof *kinds, RANKS = 4, BIG = 1 << 18 };

/* So many regions of one buffer of `rows` rows each. */
static gantry_buffer regions(gantry_region *to, const char *id, unsigned count, int64_t rows)
{
    gantry_buffer b = buffer(g, id, count * rows);
    gantry_buffer_split(g, b, count);
    for (unsigned i = 0; i < count; i++)
        to[i] = gantry_part(b, i);
    return b;
}

static void read_at(const char *id, gantry_region part)
{
    gantry_node r = work(g, id, 5);
    gantry_buffer y = buffer(g, id, 16);
    gantry_node_read(g, r, part);
    gantry_node_write(g, r, gantry_all(y));
    gantry_buffer_output(g, y);
}

/* The last result first, as the first device would be taken if it were as near. */
START_TEST(readers_go_to_the_rank_that_has_the_result)
{
    gantry_collective kind = kinds[_i % KINDS];
    bool one_in = kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER;
    bool one_out = kind == GANTRY_REDUCE || kind == GANTRY_GATHER;
    bool cut_in = kind == GANTRY_GATHER, cut_out = kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER;
    bool reduces = kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER || kind == GANTRY_ALL_REDUCE;
    unsigned ins = one_in ? 1 : RANKS, outs = one_out ? 1 : RANKS;
    gantry_region in[RANKS], out[RANKS];
    char id[16];
    begin(virtual_machine(RANKS));
    regions(in, "x", ins, cut_in ? BIG / RANKS : BIG);
    regions(out, "y", outs, cut_out ? BIG / RANKS : BIG);
    for (unsigned i = 0; i < ins; i++) {
        snprintf(id, sizeof id, "w%u", i);
        gantry_node w = work(g, id, 5);
        gantry_node_on(g, w, (const char *[]){ "dev0", "dev1", "dev2", "dev3" }[one_in ? 2 : i]);
        gantry_node_write(g, w, in[i]);
    }
    gantry_graph_collective(g, "c", kind, reduces ? GANTRY_SUM : (gantry_access)0, ins, in, outs, out,
                            one_in || one_out ? 2 : 0);
    for (unsigned i = outs; i--;) {
        snprintf(id, sizeof id, "r%u", i);
        read_at(id, out[i]);
    }
    s = schedule(g, m, _i < KINDS ? "heft" : "min-min");
    const gy_op *op = op_of(s, "c");
    for (unsigned i = 0; i < outs; i++) {
        const gy_use *u = &s->use.at[op->use + ins + i];
        uint32_t device = s->lanes.at[s->op_lane.at[op->lane + u->rank]].device;
        snprintf(id, sizeof id, "r%u", i);
        ck_assert_str_eq(device_of(s, id), s->machine->device[device].id);
    }
    end();
}
END_TEST

START_TEST(an_algorithm_knows_its_kinds_within_one_memory_too)
{
    begin(virtual_machine(1));
    gantry_node_algorithm(g, one_rank("c", work(g, "w", 5)), "copy_engine");
    ck_assert_str_eq(refusal(g, m, NULL, GANTRY_E_GRAPH),
                     "all_reduce \"c\" asks for algorithm \"copy_engine\": copy engines cannot combine; here there are "
                     "auto, ring, tree, recursive, one_shot, two_shot, islands, counters, nccl");
    end();
    begin(virtual_machine(1));
    gantry_node_algorithm(g, one_rank("c", work(g, "w", 5)), "recursive");
    s = schedule(g, m, NULL);
    ck_assert_int_eq(op_of(s, "c")->algorithm, GY_ALGORITHM_RECURSIVE);
    end();
}
END_TEST

/* ---- at random ---- */

#define MOST 48 /* nodes */

typedef struct maker {
    uint64_t state;
    gantry_node node[MOST];
    int nodes, devices;
} maker;

static int pick(maker *k, int n)
{
    k->state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(k->state) % (uint64_t)n);
}

/* Devices of two kinds; each in host memory, or in one of as many memories as there are devices at most. */
static gantry_machine *random_machine(maker *k)
{
    gy_text t = { 0 };
    int memories = pick(k, k->devices + 1), gpus = pick(k, 3);
    gy_text_add(&t, "{\"gantry_machine\":1,\"name\":\"any\",\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < memories; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":%d}", i, pick(k, 4) ? 1 << 30 : 256 << pick(k, 5));
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < k->devices; i++) {
        int memory = i < memories ? i : memories ? pick(k, memories) : -1;
        memory = pick(k, 8) ? memory : -1;
        gy_text_printf(&t, "{\"id\":\"d%d\",\"kind\":\"%c\",\"type\":\"%s\",\"memory\":\"", i, 'a' + pick(k, 2),
                       gpus && memory >= 0 ? "gpu" : "cpu");
        gy_text_printf(&t, memory < 0 ? "host\"}," : "m%d\"},", memory);
    }
    gy_text_add(&t, "{\"id\":\"cpu\",\"type\":\"cpu\",\"use\":\"host\",\"memory\":\"host\"}]");
    if (memories)
        gy_text_add(&t, ",\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":1,\"bandwidth_gbs\":5}]");
    gy_text_add(&t, "}");
    ck_assert(!t.failed);
    gantry_machine *machine = parse_machine(t.at);
    gy_text_free(&t);
    return machine;
}

static void add_wishes(maker *k, gantry_node n)
{
    static const char *const where[] = { "d0", "devices-1", "1 % devices", "cpu", "a", "b" };
    if (!pick(k, 3))
        gantry_node_on(g, n, where[pick(k, 6) % (pick(k, 3) ? 4 : 6)]);
    if (k->nodes && !pick(k, 4))
        gantry_node_with(g, n, k->node[pick(k, k->nodes)]);
    if (k->nodes && !pick(k, 4))
        gantry_node_apart(g, n, k->node[pick(k, k->nodes)]);
    k->node[k->nodes++] = n;
}

/* `count` neighbouring regions of `rows` each. */
static gantry_buffer cut(gantry_region *region, const char *name, int number, unsigned count, int rows)
{
    char text[16];
    snprintf(text, sizeof text, "%s%d", name, number);
    gantry_buffer b = buffer(g, text, (int64_t)count * rows);
    for (unsigned i = 0; i < count; i++)
        region[i] = gantry_rows(b, (int64_t)i * rows, ((int64_t)i + 1) * rows);
    return b;
}

static void add_accesses(maker *k, const char *name, int number, const gantry_region *region, unsigned count,
                         bool writes)
{
    for (unsigned i = 0; i < count; i++) {
        char id[32];
        if (!writes && pick(k, 2))
            continue;
        snprintf(id, sizeof id, "%s%d.%u", name, number, i);
        gantry_node n = work(g, id, 1 + pick(k, 9));
        writes ? gantry_node_write(g, n, region[i]) : gantry_node_read(g, n, region[i]);
        add_wishes(k, n);
    }
}

static void add_collective(maker *k, int number)
{
    static const char *const names[] = { "auto",     "copy_engine", "ring",    "tree",     "recursive",
                                         "one_shot", "two_shot",    "islands", "counters", "nccl" };
    gantry_collective kind = (gantry_collective)(GANTRY_ALL_REDUCE + pick(k, 8));
    int p = pick(k, 2) ? 1 : 1 + pick(k, 4), rows = p * (pick(k, 2) ? 4 : 16);
    bool one_in = kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER;
    bool one_out = kind == GANTRY_REDUCE || kind == GANTRY_GATHER, rooted = one_in || one_out;
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    bool parts_in = kind == GANTRY_GATHER || kind == GANTRY_ALL_GATHER;
    bool parts_out = kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER;
    unsigned ins = one_in ? 1 : (unsigned)p, outs = one_out ? 1 : (unsigned)p;
    gantry_region in[4], out[4];
    char id[16];
    gantry_buffer x = cut(in, "x", number, ins, parts_in ? rows / p : rows);
    gantry_buffer y = cut(out, "y", number, outs, parts_out ? rows / p : rows);
    if (pick(k, 2)) {
        add_accesses(k, "w", number, in, ins, true);
    } else {
        static const gantry_buffer_class classes[] = { GANTRY_INPUT, GANTRY_CONST, GANTRY_STATE };
        gantry_buffer_set_class(g, x, classes[pick(k, 3)]);
        gantry_buffer_init_value(g, x, 1);
    }
    if (pick(k, 2))
        gantry_buffer_output(g, y);
    snprintf(id, sizeof id, "c%d", number);
    gantry_node c = gantry_graph_collective(g, id, kind, reduces ? GANTRY_MAX : (gantry_access)0, ins, in, outs, out,
                                            rooted ? pick(k, p) : 0);
    if (pick(k, 2))
        gantry_node_algorithm(g, c, names[pick(k, 9)]);
    add_wishes(k, c);
    add_accesses(k, "r", number, out, outs, false);
}

static void try_policy(const char *policy, uint64_t seed, int *right)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *made = NULL;
    gantry_error err = { 0 };
    o.policy = policy;
    o.effort = policy ? 0 : 2;
    gantry_status status = gantry_schedule_new(&made, g, m, &o, &err);
    if (!status)
        status = gy_schedule_verify(made, g, &err);
    *right += !status;
    bool fair = !status || status == GANTRY_E_GRAPH || status == GANTRY_E_UNSUPPORTED || status == GANTRY_E_CAPACITY;
    ck_assert_msg(fair && !strstr(err.text, "internal"), "seed %llu, policy %s: %s", (unsigned long long)seed,
                  policy ? policy : "-", err.text);
    gantry_schedule_free(made);
}

/* GANTRY_TEST_GRAPHS: how many in each of the loops. */
START_TEST(no_wish_ends_in_an_internal_error)
{
    int graphs = getenv("GANTRY_TEST_GRAPHS") ? atoi(getenv("GANTRY_TEST_GRAPHS")) : 300, valid = 0, right = 0;
    for (int i = 0; i < graphs; i++) {
        maker k = { .state = (uint64_t)i * 8 + (uint64_t)_i, .devices = 1 + _i };
        uint64_t seed = k.state;
        gantry_error err;
        begin(random_machine(&k));
        for (int c = 1 + pick(&k, 3); c > 0; c--)
            add_collective(&k, c);
        if (gantry_graph_check(g, &err) == GANTRY_OK) {
            valid++;
            try_policy(NULL, seed, &right);
            try_policy(gantry_policy_name((size_t)i % 22), seed, &right);
        }
        end();
    }
    printf("%d devices: %d of %d graphs are valid, %d schedules\n", 1 + _i, valid, graphs, right);
    ck_assert_msg(right * 4 > graphs, "%d schedules of %d graphs", right, graphs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranks");
    TCase *c = tcase_create("ranks");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, one_rank_is_where_on_says, 0, POLICIES);
    tcase_add_loop_test(c, one_rank_is_with_its_partner, 0, POLICIES);
    tcase_add_loop_test(c, one_rank_is_apart, 0, POLICIES);
    tcase_add_test(c, wishes_of_one_rank_that_cannot_be_are_refused);
    tcase_add_loop_test(c, several_ranks_have_no_place, 0, POLICIES);
    tcase_add_loop_test(c, readers_go_to_the_rank_that_has_the_result, 0, 2 * KINDS);
    tcase_add_test(c, an_algorithm_knows_its_kinds_within_one_memory_too);
    tcase_add_loop_test(c, no_wish_ends_in_an_internal_error, 0, 4);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
