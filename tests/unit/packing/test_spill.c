/* SPDX-License-Identifier: Apache-2.0 */
/* Instances that leave, where they go, what is dropped, and what is refused. One unit: 64 rows of f32, 256 bytes. */
#include "unit/scheduler/suite.h"

#include <stdio.h>
#include <string.h>

#define UNIT 256

static gantry_buffer unit(gantry_graph *g, const char *name)
{
    return buffer(g, name, 64);
}

/* Each after the one before it. */
static gantry_node use(gantry_graph *g, const char *id, gantry_buffer read, gantry_buffer write)
{
    gantry_node n = work(g, id, 10), before = { .id = n.id - 1 };
    gantry_node_on(g, n, "d0");
    if (n.id)
        gantry_node_after(g, n, before);
    if (read.id != GANTRY_NONE)
        gantry_node_read(g, n, gantry_all(read));
    if (write.id != GANTRY_NONE)
        gantry_node_write(g, n, gantry_all(write));
    return n;
}

static const gantry_buffer nothing = { .id = GANTRY_NONE };

/* The instance that a copy reads (0) or writes (1). */
static const gy_instance *end_of(const gantry_schedule *s, const gy_op *op, uint32_t use_)
{
    return &s->instances.at[s->use.at[op->use + use_].instance];
}

static const gy_op *nth(const gantry_schedule *s, gy_op_kind kind, uint32_t n)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == kind && n-- == 0)
            return &s->ops.at[i];
    ck_abort_msg("no such op");
    return NULL;
}

static const char *value_of(const gantry_schedule *s, const gy_op *op)
{
    return s->values.at[end_of(s, op, 0)->value].name;
}

static gantry_schedule *scheduled(gantry_graph *g, int devices, long long capacity)
{
    gantry_machine *m = small_machine(devices, capacity);
    gantry_schedule *s = schedule(g, m, NULL);
    for (int d = 1; d <= devices; d++)
        ck_assert_uint_le(gantry_schedule_peak_bytes(s, (size_t)d), (uint64_t)capacity);
    gantry_machine_free(m);
    return s;
}

/* a, b, c are made, then read as b, a, c: with room for two, making c sends away the one that is read later, a. */
START_TEST(the_one_whose_next_use_is_furthest_leaves)
{
    gantry_graph *g = gantry_graph_new("belady");
    gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c");
    use(g, "make a", nothing, a);
    use(g, "make b", nothing, b);
    use(g, "make c", nothing, c);
    use(g, "use c", c, nothing);
    use(g, "use b", b, nothing);
    use(g, "use a", a, nothing);
    gantry_schedule *s = scheduled(g, 1, 2 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 1);
    ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), 1);
    const gy_op *out = nth(s, GY_OP_EVICT, 0), *in = nth(s, GY_OP_FETCH, 0);
    ck_assert_str_eq(value_of(s, out), "a");
    ck_assert_str_eq(value_of(s, in), "a");
    ck_assert_uint_eq(end_of(s, out, 1)->space, GY_SPACE_STAGING); /* one device: host memory */
    ck_assert_uint_eq(s->staging, UNIT);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* The same beside a device that has room: its memory comes before host memory. */
START_TEST(a_peer_with_room_comes_first)
{
    for (int room = 0; room < 2; room++) {
        gantry_graph *g = gantry_graph_new("peer");
        gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c"), p = unit(g, "p"), q = unit(g, "q");
        gantry_node first = work(g, "first", 1); /* keeps the other device full, or not */
        gantry_node_on(g, first, "d1");
        gantry_node_write(g, first, gantry_all(p));
        if (!room)
            gantry_node_write(g, first, gantry_all(q));
        use(g, "make a", nothing, a);
        use(g, "make b", nothing, b);
        use(g, "make c", nothing, c);
        use(g, "use c", c, nothing);
        use(g, "use b", b, nothing);
        gantry_node end = use(g, "use a", a, nothing), last = work(g, "last", 1);
        gantry_node_on(g, last, "d1");
        gantry_node_read(g, last, gantry_all(p));
        if (!room)
            gantry_node_read(g, last, gantry_all(q));
        gantry_node_after(g, last, end);
        gantry_schedule *s = scheduled(g, 2, 2 * UNIT);
        const gy_op *out = nth(s, GY_OP_EVICT, 0);
        ck_assert_str_eq(value_of(s, out), "a");
        ck_assert_uint_eq(end_of(s, out, 1)->memory, room ? 2 : 0);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* An input that was not changed is dropped and uploaded again; one that was changed is evicted. */
START_TEST(what_can_be_had_again_is_dropped)
{
    for (int changed = 0; changed < 2; changed++) {
        gantry_graph *g = gantry_graph_new("drop");
        gantry_buffer x = unit(g, "x"), b = unit(g, "b"), c = unit(g, "c");
        gantry_buffer_init_value(g, x, 1);
        gantry_node n = use(g, "read x", nothing, nothing);
        changed ? gantry_node_readwrite(g, n, gantry_all(x)) : gantry_node_read(g, n, gantry_all(x));
        use(g, "make b", nothing, b);
        use(g, "make c", b, c);
        use(g, "use c", c, nothing);
        use(g, "again x", x, nothing);
        gantry_schedule *s = scheduled(g, 1, 2 * UNIT);
        ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), changed ? 1 : 0);
        ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), 1);
        ck_assert_uint_eq(end_of(s, nth(s, GY_OP_FETCH, 0), 0)->space, changed ? GY_SPACE_STAGING : GY_SPACE_INPUT);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* Rows that came back and were not changed leave without being copied a second time. */
START_TEST(what_is_outside_still_is_not_copied_twice)
{
    gantry_graph *g = gantry_graph_new("twice");
    gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c"), d = unit(g, "d"), e = unit(g, "e");
    use(g, "make a", nothing, a);
    use(g, "make b", nothing, b);
    use(g, "make c", b, c);
    use(g, "use c", c, nothing);
    use(g, "use a", a, nothing);
    use(g, "make d", nothing, d);
    use(g, "make e", d, e);
    use(g, "use e", e, nothing);
    use(g, "use a again", a, nothing);
    gantry_schedule *s = scheduled(g, 1, 2 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 1);
    ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), 2);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Rows that are overwritten before they are read need no keeping. */
START_TEST(what_is_overwritten_is_forgotten)
{
    gantry_graph *g = gantry_graph_new("dead");
    gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c");
    use(g, "make a", nothing, a);
    use(g, "use a", a, nothing);
    use(g, "make b", nothing, b);
    use(g, "make c", b, c);
    use(g, "use c", c, nothing);
    use(g, "make a again", nothing, a);
    use(g, "use a again", a, nothing);
    gantry_schedule *s = scheduled(g, 1, 2 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT) + count_kind(s, GY_OP_FETCH), 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Three constants where there is room for two units: all persist in host memory, and come when they are used. */
START_TEST(constants_that_are_too_much_stay_at_home)
{
    gantry_graph *g = gantry_graph_new("constants");
    gantry_buffer y = unit(g, "y");
    gantry_buffer_output(g, y);
    use(g, "begin", nothing, y);
    for (int i = 0; i < 3; i++) {
        char name[24];
        snprintf(name, sizeof name, "w%d", i);
        gantry_buffer w = unit(g, name);
        gantry_buffer_set_class(g, w, GANTRY_CONST);
        gantry_buffer_init_value(g, w, i);
        snprintf(name, sizeof name, "layer%d", i);
        gantry_node n = use(g, name, w, nothing);
        gantry_node_readwrite(g, n, gantry_all(y));
    }
    gantry_schedule *s = scheduled(g, 1, 2 * UNIT);
    uint32_t home = 0;
    for (size_t i = 0; i < s->instances.count; i++)
        home += s->instances.at[i].role == GY_ROLE_PERSIST && s->instances.at[i].memory == 0;
    ck_assert_uint_ge(home, 2);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), home);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Forty constants, of which each is used once, and room for 36 units: one is for y, one or two for constants that come.
 * The rest stays, so five or six come in each start. */
START_TEST(constants_stay_as_many_as_there_is_room_for)
{
    enum { LAYERS = 40, ROOM = 36 };
    gantry_graph *g = gantry_graph_new("stream");
    gantry_buffer y = unit(g, "y");
    gantry_buffer_output(g, y);
    use(g, "begin", nothing, y);
    for (int i = 0; i < LAYERS; i++) {
        char name[24];
        snprintf(name, sizeof name, "w%d", i);
        gantry_buffer w = unit(g, name);
        gantry_buffer_set_class(g, w, GANTRY_CONST);
        gantry_buffer_init_value(g, w, i);
        snprintf(name, sizeof name, "layer%d", i);
        gantry_node_readwrite(g, use(g, name, w, nothing), gantry_all(y));
    }
    gantry_schedule *s = scheduled(g, 1, (long long)ROOM * UNIT);
    ck_assert_uint_ge(count_kind(s, GY_OP_FETCH), LAYERS - (ROOM - 2));
    ck_assert_uint_le(count_kind(s, GY_OP_FETCH), LAYERS - (ROOM - 3));
    /* Each comes while others that stay are used: nothing waits but for the first, or the last. */
    ck_assert_double_le((double)s->makespan / GY_TICKS_PER_US, 10.0 * (LAYERS + 1) + 3 * 0.56);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Constants of one to four thousand units, each used once, with room for a half to all of them: no more is moved than
 * is needed and what two of the largest take, which is room for the next to come while one is used. */
START_TEST(moved_is_what_is_needed)
{
    enum { LAYERS = 24, SEEDS = 40, LARGE = 1000 };
    uint64_t moved = 0, needed = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        gantry_graph *g = gantry_graph_new("sizes");
        gantry_buffer y = unit(g, "y");
        gantry_buffer_output(g, y);
        use(g, "begin", nothing, y);
        uint32_t state = seed * 2654435761u + 1, all = 1;
        for (int i = 0; i < LAYERS; i++) {
            char name[24];
            state = state * 1664525u + 1013904223u;
            uint32_t units = 1 + (state >> 20) % 4;
            all += units;
            snprintf(name, sizeof name, "w%d", i);
            gantry_buffer w = buffer(g, name, 64 * LARGE * units);
            gantry_buffer_set_class(g, w, GANTRY_CONST);
            gantry_buffer_init_value(g, w, i);
            snprintf(name, sizeof name, "layer%d", i);
            gantry_node n = work(g, name, 0.01); /* the link is what there is too little of */
            gantry_node_read(g, n, gantry_all(w));
            gantry_node_readwrite(g, n, gantry_all(y));
        }
        gantry_schedule *s = scheduled(g, 1, (all / 2 + all / 2 * seed / SEEDS) * UNIT * LARGE);
        gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
        ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
        ck_assert_msg(sum.bytes_moved <= sum.bytes_needed + 8 * UNIT * LARGE,
                      "seed %u: %llu bytes are moved, %llu needed", seed, (unsigned long long)sum.bytes_moved,
                      (unsigned long long)sum.bytes_needed);
        moved += sum.bytes_moved;
        needed += sum.bytes_needed;
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
    printf("constants: %.3f of what is needed is moved\n", (double)moved / (double)needed);
}
END_TEST

/* Eight layers whose weights are gathered from two devices, twice: for the way there and for the way back. A gathered
 * layer has two units, and there is room for three of them beside the weights; what begins as soon as it can would be
 * sixteen. */
START_TEST(gathers_wait_until_their_layer)
{
    enum { LAYERS = 8, STEPS = 2 * LAYERS };
    gantry_graph *g = gantry_graph_new("gathers");
    gantry_buffer w[2][LAYERS], y[2] = { unit(g, "y0"), unit(g, "y1") };
    char name[32];
    for (int k = 0; k < 2; k++) {
        gantry_graph_fill(g, k ? "begin1" : "begin0", gantry_all(y[k]), 0);
        gantry_buffer_output(g, y[k]);
        for (int i = 0; i < LAYERS; i++) {
            snprintf(name, sizeof name, "w%d_%d", i, k);
            w[k][i] = unit(g, name);
            gantry_buffer_set_class(g, w[k][i], GANTRY_STATE);
            gantry_buffer_init_value(g, w[k][i], i);
        }
    }
    for (int i = 0; i < STEPS; i++) {
        int layer = i < LAYERS ? i : STEPS - 1 - i;
        gantry_region in[2], out[2];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "f%d_%d", i, k);
            out[k] = gantry_all(buffer(g, name, 128));
            in[k] = gantry_all(w[k][layer]);
        }
        snprintf(name, sizeof name, "gather%d", i);
        gantry_graph_collective(g, name, GANTRY_ALL_GATHER, (gantry_access)0, 2, in, 2, out, 0);
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "step%d_%d", i, k);
            gantry_node n = work(g, name, 10);
            gantry_node_on(g, n, k ? "d1" : "d0");
            gantry_node_read(g, n, out[k]);
            gantry_node_readwrite(g, n, gantry_all(y[k]));
        }
    }
    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "update%d_%d", i, k);
            gantry_node n = work(g, name, 1);
            gantry_node_on(g, n, k ? "d1" : "d0");
            gantry_node_read(g, n, gantry_all(y[k]));
            gantry_node_readwrite(g, n, gantry_all(w[k][i]));
        }
    gantry_schedule *wide = scheduled(g, 2, 1 << 20), *s = scheduled(g, 2, (LAYERS + 1 + 3 * 2) * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT) + count_kind(s, GY_OP_FETCH), 0);
    ck_assert_int_le(s->makespan, wide->makespan + wide->makespan / 100);
    gantry_schedule_free(wide);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* Rows of d0 come from d1 and d2, then the first half again from d2, which wrote it anew; two units in between make
 * them leave. They are gathered again: as they were last, so nothing of d1's comes. */
START_TEST(what_is_gathered_again_is_what_came_last)
{
    static const char *const made_on[] = { "d1", "d2", "d2" };
    gantry_graph *g = gantry_graph_new("gathered");
    gantry_buffer v = unit(g, "v"), p = unit(g, "p"), q = unit(g, "q");
    for (int i = 0; i < 3; i++) {
        gantry_node make = use(g, i == 0 ? "first" : i == 1 ? "second" : "anew", nothing, nothing);
        gantry_node_on(g, make, made_on[i]);
        gantry_node_write(g, make, gantry_rows(v, i == 1 ? 32 : 0, i == 1 ? 64 : 32));
        if (i > 0)
            use(g, i == 1 ? "read" : "read anew", v, nothing);
    }
    use(g, "make p", nothing, p);
    use(g, "make q", p, q);
    use(g, "use q", q, nothing);
    use(g, "again", v, nothing);
    gantry_schedule *s = scheduled(g, 3, 2 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 0);
    ck_assert_uint_eq(count_kind(s, GY_OP_FETCH), 2);
    for (uint32_t n = 0; n < 2; n++)
        ck_assert_uint_eq(end_of(s, nth(s, GY_OP_FETCH, n), 0)->memory, 3);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* One op with three units where there is room for two. */
START_TEST(one_op_that_is_too_much_is_refused)
{
    gantry_graph *g = gantry_graph_new("refused");
    gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c"), d = unit(g, "d");
    use(g, "make a", nothing, a);
    use(g, "make b", nothing, b);
    use(g, "make d", nothing, d);
    gantry_node n = use(g, "all", a, c);
    gantry_node_read(g, n, gantry_all(b));
    use(g, "use d", d, nothing);
    gantry_machine *m = small_machine(1, 3 * UNIT - 1);
    const char *text = refusal(g, m, NULL, GANTRY_E_CAPACITY);
    ck_assert_str_eq(text, "d0 needs 768 B at node \"all\" and has 767 B; largest: a 256 B, c 256 B, b 256 B; "
                           "take more parts, or more devices");
    gantry_machine_free(m);
    gantry_schedule *s = scheduled(g, 1, 3 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 1); /* d */
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* A chain through three memories' worth of state, on four devices: HEFT would keep it on one. */
START_TEST(three_devices_worth_runs_on_four)
{
    enum { PARTS = 12, PER_DEVICE = 4 };
    gantry_graph *g = gantry_graph_new("spread");
    gantry_buffer h = unit(g, "h");
    gantry_graph_fill(g, "begin", gantry_all(h), 0);
    for (int i = 0; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "w%d", i);
        gantry_buffer w = unit(g, name);
        gantry_buffer_set_class(g, w, GANTRY_STATE);
        gantry_buffer_init_value(g, w, i);
        snprintf(name, sizeof name, "layer%d", i);
        gantry_node n = work(g, name, 100);
        gantry_node_readwrite(g, n, gantry_all(w));
        gantry_node_readwrite(g, n, gantry_all(h));
    }
    gantry_machine *wide = small_machine(4, 1 << 20);
    gantry_schedule *together = schedule(g, wide, NULL), *spread = scheduled(g, 4, PER_DEVICE * UNIT);
    bool seen[4] = { false };
    for (int i = 1; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "layer%d", i);
        ck_assert_str_eq(device_of(together, name), device_of(together, "layer0"));
        seen[device_of(spread, name)[1] - '0'] = true;
    }
    ck_assert(seen[0] && seen[1] && seen[2] && seen[3]);
    ck_assert_uint_eq(count_kind(spread, GY_OP_EVICT) + count_kind(spread, GY_OP_FETCH), 0);
    gantry_schedule_free(together);
    gantry_schedule_free(spread);
    gantry_graph_free(g);
    gantry_machine_free(wide);
}
END_TEST

/*
 * Four lives of 2, 2, 3 and 1 units where never more than 5 are there at one time. In the order of their beginnings: b1
 * at 0, b3 on top of it at 2; when b1 is gone b2 does not fit below b3 and goes to 3 .. 6. With b3 at 3 it would fit
 * below.
 */
START_TEST(the_search_for_offsets_is_used)
{
    static const struct {
        int first, last, units;
    } lives[] = { { 4, 6, 2 }, { 0, 2, 2 }, { 2, 6, 3 }, { 1, 3, 1 } };
    enum { LIVES = sizeof lives / sizeof *lives, STEPS = 6 };
    gantry_graph *g = gantry_graph_new("holes");
    gantry_buffer b[LIVES];
    for (int i = 0; i < LIVES; i++) {
        char name[24];
        snprintf(name, sizeof name, "b%d", i);
        b[i] = buffer(g, name, 64 * lives[i].units);
    }
    gantry_node before = { .id = GANTRY_NONE };
    for (int t = 0; t < STEPS; t++) {
        char name[24];
        snprintf(name, sizeof name, "n%d", t);
        gantry_node n = work(g, name, 10);
        for (int i = 0; i < LIVES; i++)
            if (lives[i].first == t)
                gantry_node_write(g, n, gantry_all(b[i]));
            else if (lives[i].first < t && t < lives[i].last)
                gantry_node_read(g, n, gantry_all(b[i]));
        if (before.id != GANTRY_NONE)
            gantry_node_after(g, n, before);
        before = n;
    }
    gantry_schedule *s = scheduled(g, 1, 5 * UNIT);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 5 * UNIT);
    ck_assert_uint_eq(count_kind(s, GY_OP_EVICT) + count_kind(s, GY_OP_FETCH), 0);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

static gantry_status nothing_at_all(const gantry_launch *l)
{
    (void)l;
    return GANTRY_OK;
}

typedef enum maker { WORK, FUNCTION, ADDS } maker;

/* a, b, c are made and read as b, a, c in 0.1 us each, but for a; with room for two, a has to go. 256 bytes take 0.5 us
 * + 256 / 5e3 us, out and back 1.1024 us. */
static gantry_schedule *with_one_too_many(gantry_graph *g, double make_a_us, maker how, const char *spill)
{
    static const char *const ids[] = { "make a", "make b", "make c", "use c", "use b", "use a" };
    gantry_buffer b[] = { unit(g, "a"), unit(g, "b"), unit(g, "c") };
    for (uint32_t i = 0; i < 6; i++) {
        gantry_node n = i == 0 && how == FUNCTION ? gantry_graph_launch(g, ids[i], nothing_at_all, NULL)
                                                  : gantry_graph_work(g, ids[i]);
        gantry_node_time(g, n, NULL, i ? 0.1 : make_a_us);
        if (i)
            gantry_node_after(g, n, (gantry_node){ .id = n.id - 1 });
        if (i >= 3)
            gantry_node_read(g, n, gantry_all(b[5 - i]));
        else if (i == 0 && how == ADDS)
            gantry_node_reduce(g, n, gantry_all(b[i]), GANTRY_SUM);
        else
            gantry_node_write(g, n, gantry_all(b[i]));
    }
    gantry_machine *m = small_machine(1, 2 * UNIT);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.spill = spill;
    if (gantry_schedule_new(&s, g, m, &o, &err))
        ck_abort_msg("%s", err.text);
    gantry_machine_free(m);
    return s;
}

START_TEST(what_is_made_faster_than_copied_is_made_again)
{
    static const struct again {
        double us;
        maker how;
        const char *spill;
        uint64_t repeats;
    } cases[] = {
        { 0.2, WORK, NULL, 1 }, { 0.8, WORK, "auto", 1 }, { 1.1, WORK, NULL, 0 }, /* 2.7 us; by copies 1.1 + 0.55 + 0.2
                                                                                     + 0.55 + 0.1, since all else is
                                                                                     hidden */
        { 1.2, WORK, NULL, 0 }, { 0.2, WORK, "copy", 0 }, { 0.2, FUNCTION, NULL, 0 }, { 0.2, ADDS, NULL, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_graph *g = gantry_graph_new("again");
        gantry_schedule *s = with_one_too_many(g, cases[i].us, cases[i].how, cases[i].spill);
        gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
        ck_assert_int_eq(gantry_schedule_summarize(s, &sum, NULL), GANTRY_OK);
        ck_assert_uint_eq(sum.recomputed, cases[i].repeats);
        ck_assert_uint_eq(count_kind(s, GY_OP_EVICT), 1 - cases[i].repeats);
        for (size_t k = 0; k < s->ops.count; k++)
            ck_assert(!s->ops.at[k].repeat || !strcmp(s->node_ids.at[s->ops.at[k].node], "make a"));
        if (cases[i].repeats) /* what is computed, and nothing else: twice a, and five times 0.1 us */
            ck_assert_double_eq_tol(sum.makespan_us, 2 * cases[i].us + 0.5, 1e-6);
        gantry_schedule_free(s);
        gantry_graph_free(g);
    }
}
END_TEST

/* Forward through 64 layers of `us` each, and back, twice as long, over what they left, in 16 units. A copy takes
 * 0.5512 us. When the way there ends, 48 layers are not in memory: at most as many of them have gone out as copies fit
 * in that time, and each of the rest takes `us` once more. */
START_TEST(making_again_and_copying_share_the_work)
{
    enum { LAYERS = 64, UNITS = 16 };
    static const double times[] = { 0.1, 0.2, 0.25, 0.4, 0.6 };
    double us = times[_i], copy = 0.5512, out = LAYERS * us / copy;
    double again = out < LAYERS - UNITS ? LAYERS - UNITS - out : 0, best = 3 * LAYERS * us + again * us;
    gantry_graph *g = gantry_graph_new("layers");
    gantry_buffer a[LAYERS];
    char name[24];
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(name, sizeof name, "a%d", i);
        if (i < LAYERS)
            a[i] = unit(g, name);
        snprintf(name, sizeof name, "n%d", i);
        gantry_node n = work(g, name, i < LAYERS ? us : 2 * us);
        if (i > 0)
            gantry_node_after(g, n, (gantry_node){ .id = n.id - 1 });
        if (i > 0 && i < LAYERS)
            gantry_node_read(g, n, gantry_all(a[i - 1]));
        i < LAYERS ? gantry_node_write(g, n, gantry_all(a[i]))
                   : gantry_node_read(g, n, gantry_all(a[2 * LAYERS - 1 - i]));
    }
    gantry_schedule *s = scheduled(g, 1, UNITS * UNIT);
    double made = (double)s->makespan / GY_TICKS_PER_US;
    printf("layers of %g us: %.2f us, %.3f of the best\n", us, made, made / best);
    ck_assert_double_ge(made, 3 * LAYERS * us);
    ck_assert_double_le(made, 1.05 * best);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* The same, refused: the third unit is one too many at the op that makes it. */
START_TEST(spilling_can_be_off)
{
    gantry_graph *g = gantry_graph_new("off");
    gantry_buffer a = unit(g, "a"), b = unit(g, "b"), c = unit(g, "c");
    use(g, "make a", nothing, a);
    use(g, "make b", nothing, b);
    use(g, "make c", nothing, c);
    use(g, "use c", c, nothing);
    use(g, "use b", b, nothing);
    use(g, "use a", a, nothing);
    gantry_machine *m = small_machine(1, 2 * UNIT);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_schedule *s = NULL;
    gantry_error err;
    o.spill = "off";
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, &o, &err), GANTRY_E_CAPACITY);
    ck_assert_str_eq(err.text,
                     "d0 needs 768 B at node \"make c\" and has 512 B; largest: a 256 B, b 256 B, c 256 B; take "
                     "more parts, more devices, or --spill auto");
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spill");
    TCase *c = tcase_create("spill");
    tcase_add_test(c, the_one_whose_next_use_is_furthest_leaves);
    tcase_add_test(c, a_peer_with_room_comes_first);
    tcase_add_test(c, what_can_be_had_again_is_dropped);
    tcase_add_test(c, what_is_outside_still_is_not_copied_twice);
    tcase_add_test(c, what_is_overwritten_is_forgotten);
    tcase_add_test(c, constants_that_are_too_much_stay_at_home);
    tcase_add_test(c, constants_stay_as_many_as_there_is_room_for);
    tcase_add_test(c, moved_is_what_is_needed);
    tcase_add_test(c, gathers_wait_until_their_layer);
    tcase_add_test(c, what_is_gathered_again_is_what_came_last);
    tcase_add_test(c, one_op_that_is_too_much_is_refused);
    tcase_add_test(c, three_devices_worth_runs_on_four);
    tcase_add_test(c, the_search_for_offsets_is_used);
    tcase_add_test(c, what_is_made_faster_than_copied_is_made_again);
    tcase_add_loop_test(c, making_again_and_copying_share_the_work, 0, 5);
    tcase_add_test(c, spilling_can_be_off);
    suite_add_tcase(s, c);
    return run_suite(s);
}
