/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator against cases worked out by hand. All of them use rates in GB/s that are easy to divide: 10 GB/s is
 * 10,000 bytes per microsecond, so 100,000 bytes take 10 us, 12 us with the latency of 2 us.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim.h"
#include "support/hand.h"
#include "support/run_suite.h"

#define US(x) ((gy_ticks)(x)*GY_TICKS_PER_US)

/* Four devices with a port in and out each, as behind a crossbar, and a host memory with its own. Memory i is device
 * i - 1's. `extra` goes into the object. */
#define PORTS(engines, extra)                                                                                          \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": "                                                                                                   \
    "\"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}, {\"id\": \"c\", \"capacity\": \"1TiB\"}, {\"id\": \"d\", "    \
    "\"capacity\": \"1TiB\"}], \"devices\": ["                                                                         \
    "{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\", \"copy_engines\": " #engines "},"                           \
    "{\"id\": \"B\", \"type\": \"gpu\", \"memory\": \"b\", \"copy_engines\": " #engines "},"                           \
    "{\"id\": \"C\", \"type\": \"gpu\", \"memory\": \"c\", \"copy_engines\": " #engines "},"                           \
    "{\"id\": \"D\", \"type\": \"gpu\", \"memory\": \"d\", \"copy_engines\": " #engines "}],"                          \
    "\"resources\": {\"host.out\": 10, \"host.in\": 10, \"a.out\": 10, \"a.in\": 10, \"b.out\": 10, \"b.in\": 10, "    \
    "\"c.out\": 10, \"c.in\": 10, \"d.out\": 10, \"d.in\": 10},"                                                       \
    "\"routes\": [{\"from\": \"*\", \"to\": \"*\", \"latency_us\": 2, \"bandwidth_gbs\": 10, "                         \
    "\"via\": [\"{from}.out\", \"{to}.in\"]}]" extra "}"

enum { HOST, A, B, C, D };

/* Three routes between four memories whose rates and resources the tests choose: a -> b, a -> c, b -> c. */
#define THREE(r1, r2, ab, via_ab, ac, via_ac, bc, via_bc)                                                              \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}, {\"id\": \"a\", \"capacity\": " \
    "1000000}, {\"id\": \"b\", \"capacity\": 1000000}, {\"id\": \"c\", \"capacity\": 1000000}], "                      \
    "\"devices\": [{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\", \"copy_engines\": 3}],"                       \
    "\"resources\": {\"L1\": " #r1 ", \"L2\": " #r2 "}, \"routes\": ["                                                 \
    "{\"from\": \"host\", \"to\": [\"a\", \"b\", \"c\"], \"bandwidth_gbs\": 1, \"both\": true},"                       \
    "{\"from\": \"a\", \"to\": \"b\", \"bandwidth_gbs\": " #ab ", \"via\": [" via_ab "]},"                             \
    "{\"from\": \"a\", \"to\": \"c\", \"bandwidth_gbs\": " #ac ", \"via\": [" via_ac "]},"                             \
    "{\"from\": \"b\", \"to\": \"c\", \"bandwidth_gbs\": " #bc ", \"via\": [" via_bc "]}]}"

static uint32_t copy_lane(gantry_schedule *s, uint32_t device)
{
    return hand_lane(s, device, GY_LANE_COPY);
}
static uint32_t compute_lane(gantry_schedule *s, uint32_t device)
{
    return hand_lane(s, device, GY_LANE_COMPUTE);
}

static void run(gantry_schedule *s)
{
    gantry_error err = { 0 };
    gantry_status status = gy_sim_run(s, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
}

/* Shares are rounded down to a byte per second: an end may be a few picoseconds late, never early. */
static void ends(const gantry_schedule *s, uint32_t op, gy_ticks expected)
{
    ck_assert_int_ge(s->ops.at[op].end, expected);
    ck_assert_int_le(s->ops.at[op].end, expected + 10);
}

static void spans(const gantry_schedule *s, uint32_t op, gy_ticks start, gy_ticks end)
{
    ck_assert_int_eq(s->ops.at[op].start, start);
    ck_assert_int_eq(s->ops.at[op].end, end);
}

/* A broadcast of 100,000 bytes that takes 12 us alone goes on at 25/3 GB/s. From 2 us on a copy out of the same port
 * leaves it 5: of its 83,333 bytes none are left at 56/3 us, and 16,667 of the copy's go at 10 GB/s then. Both together
 * cannot end before the 20 us that the port needs. */
static uint32_t add_broadcast(gantry_schedule *s, uint32_t to, double us)
{
    uint32_t value = hand_value(s, "v", 100000, 1), l[2] = { compute_lane(s, 0), compute_lane(s, to - A) };
    uint32_t op = hand_collective(s, GANTRY_BROADCAST, 2, l, us);
    hand_use(s, hand_instance(s, value, A, 0, 100000), GANTRY_READ);
    hand_use(s, hand_instance(s, value, to, 0, 100000), GANTRY_WRITE);
    s->ops.at[op].ins = 1;
    s->ops.at[op].algorithm = GY_ALGORITHM_COPY;
    return op;
}

START_TEST(collective_and_copy_share)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t all = add_broadcast(s, B, 12), copy = hand_move(s, copy_lane(s, 0), A, C, 100000);
    run(s);
    ck_assert_int_le(llabs(s->ops.at[all].end - US(56) / 3), 10);
    ck_assert_int_le(llabs(s->ops.at[copy].end - US(61) / 3), 10);
    gantry_schedule_free(s);
}
END_TEST

/* Two that take 12 us each alone share the port of A: 20 us. Those of two different ports go side by side; and a
 * measured duration of 8 us, less than the port needs, holds where the collective is alone. */
START_TEST(collectives_share)
{
    gantry_schedule *s = hand_new(PORTS(8, "")), *fast = hand_new(PORTS(8, ""));
    uint32_t one = add_broadcast(s, B, 12), two = add_broadcast(s, C, 12), alone = add_broadcast(fast, B, 8);
    run(s);
    run(fast);
    ends(s, one, US(20));
    ends(s, two, US(20));
    spans(fast, alone, 0, US(8));
    gantry_schedule_free(s);
    gantry_schedule_free(fast);
}
END_TEST

/* Copies of up to 10,000 bytes take 4 us, one as four beside each other: 40,000 bytes cross 10 GB/s in that time. Eight
 * take 8 us, as their bytes need. */
#define FLAT                                                                                                           \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": \"1TiB\"}], \"devices\": [{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\", \"copy_engines\": " \
    "8}], "                                                                                                            \
    "\"resources\": {\"link\": 10}, \"routes\": [{\"from\": \"host\", \"to\": \"a\", \"both\": true, \"via\": "        \
    "[\"link\"], "                                                                                                     \
    "\"points\": [[10000, 4], [20000, 5]]}]}"

START_TEST(small_copies_share)
{
    gantry_schedule *s = hand_new(FLAT);
    uint32_t copies = _i ? 8 : 4;
    for (uint32_t i = 0; i < copies; i++)
        hand_move(s, copy_lane(s, 0), HOST, A, 10000);
    run(s);
    for (uint32_t i = 0; i < copies; i++)
        ends(s, i, US(copies));
    gantry_schedule_free(s);
}
END_TEST

START_TEST(nothing)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    s->makespan = 7;
    run(s);
    ck_assert_int_eq(s->makespan, 0);
    gantry_schedule_free(s);
}
END_TEST

/* One lane: 3 + 5 us. A second lane at the same time: 4 us. The longest is the makespan. */
START_TEST(chain)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 1);
    uint32_t x = hand_launch(s, "x", l0, 3), y = hand_launch(s, "y", l1, 4), z = hand_launch(s, "z", l0, 5);
    run(s);
    spans(s, x, 0, US(3));
    spans(s, y, 0, US(4));
    spans(s, z, US(3), US(8));
    ck_assert_int_eq(s->makespan, US(8));
    gantry_schedule_free(s);
}
END_TEST

/* A GPU of two lanes whose launches take 4 us: what takes at most 8 us is launched while others compute, the rest
 * has the device for itself from its beginning. */
#define LANES                                                                                                          \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": "                                                                                                   \
    "\"1TiB\"}], \"devices\": [{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\", \"lanes\": 2, \"launch_us\": "    \
    "4}], "                                                                                                            \
    "\"routes\": [{\"from\": \"host\", \"to\": \"a\", \"bandwidth_gbs\": 1, \"both\": true}]}"

START_TEST(launches_overlap)
{
    gantry_schedule *s = hand_new(LANES);
    uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 0);
    uint32_t u = hand_launch(s, "u", l0, 5), v = hand_launch(s, "v", l1, 6); /* launched together; 1 us, then 2 us */
    uint32_t w = hand_launch(s, "w", l0, 5);                                 /* launched from 5, computes from 9 */
    uint32_t big = hand_launch(s, "big", l1, 20);                            /* from 7 to 27: w waits for it */
    run(s);
    spans(s, u, 0, US(5));
    spans(s, v, 0, US(7));
    spans(s, big, US(7), US(27));
    spans(s, w, US(5), US(28));
    ck_assert_int_eq(s->makespan, US(28));
    gantry_schedule_free(s);
}
END_TEST

/* u uses 0.4 of the device, v 0.7: v begins with the 0.6 that is left, and has all it can use when u has ended at 20;
 * it has done 20 * 0.6 of 30 * 0.7 by then, and 9 / 0.7 us are left. w, which was ready last, has 0.3 from 20 on until
 * v has ended: 9 / 0.7 * 0.3 of its 10, and the rest in 10 - 27 / 7 us. */
START_TEST(ops_share_a_device)
{
    gantry_schedule *s = hand_new(LANES);
    uint32_t u = hand_launch(s, "u", compute_lane(s, 0), 20), v = hand_launch(s, "v", compute_lane(s, 0), 30);
    uint32_t w = hand_launch(s, "w", compute_lane(s, 0), 10);
    s->ops.at[u].spare = 600;
    s->ops.at[v].spare = 300;
    run(s);
    gy_ticks v_end = US(20) + (US(90) + 6) / 7;
    spans(s, u, 0, US(20));
    spans(s, v, 0, v_end);
    ck_assert_int_eq(s->ops.at[w].start, US(20));
    ck_assert_int_le(llabs(s->ops.at[w].end - (v_end + US(10) - US(27) / 7)), 2);
    gantry_schedule_free(s);
}
END_TEST

/* In one lane nothing overlaps: 5 + 6 + 20 us. */
START_TEST(launches_in_one_lane)
{
    gantry_schedule *s = hand_new(LANES);
    uint32_t l0 = compute_lane(s, 0);
    hand_launch(s, "u", l0, 5);
    hand_launch(s, "v", l0, 6);
    uint32_t big = hand_launch(s, "big", l0, 20);
    run(s);
    spans(s, big, US(11), US(31));
    gantry_schedule_free(s);
}
END_TEST

/* y (lane 1) waits for x (lane 0, 5 us) by an event; z (lane 2) for x and y. */
START_TEST(events)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_launch(s, "x", compute_lane(s, 0), 5), y = hand_launch(s, "y", compute_lane(s, 1), 2);
    uint32_t z = hand_launch(s, "z", compute_lane(s, 2), 1);
    hand_wait(s, x, y);
    hand_wait(s, x, z);
    hand_sync(s, y, z, 0, GY_CARRIER_FLAG, GY_WHY_ORDER);
    run(s);
    spans(s, x, 0, US(5));
    spans(s, y, US(5), US(7));
    spans(s, z, US(7), US(8));
    gantry_schedule_free(s);
}
END_TEST

/* Telling takes 2 us from the first GPU, 3 us from or to the second. x (0 to 5) to y beside it on the first: nothing;
 * to a copy of the first: 2 us; to z on the second: 3 us; the copy (7 to 8) to the second: 3 us. What waits for two
 * begins when the later has been told. */
START_TEST(signals)
{
    gantry_schedule *s = hand_new(
        "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "
        "\"capacity\": \"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}], \"devices\": [{\"id\": \"A\", "
        "\"type\": \"gpu\", \"memory\": \"a\", \"lanes\": 2, \"signal_us\": 2}, {\"id\": \"B\", \"type\": \"gpu\", "
        "\"memory\": \"b\", \"signal_us\": 3}], \"routes\": [{\"from\": \"*\", \"to\": \"*\", \"bandwidth_gbs\": 1}]}");
    uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 0), copies = copy_lane(s, 0), l2 = compute_lane(s, 1);
    uint32_t x = hand_launch(s, "x", l0, 5), y = hand_launch(s, "y", l1, 1);
    uint32_t c = hand_move(s, copies, A, B, 1000);
    uint32_t z = hand_launch(s, "z", l2, 1), w = hand_launch(s, "w", l2, 1);
    hand_wait(s, x, y);
    hand_wait(s, x, c);
    hand_wait(s, x, z);
    hand_wait(s, y, w);
    hand_wait(s, c, w);
    run(s);
    spans(s, y, US(5), US(6));
    spans(s, c, US(7), US(8));
    spans(s, z, US(8), US(9));
    spans(s, w, US(11), US(12));
    gantry_schedule_free(s);
}
END_TEST

#define TWO(second) TWO_WITH(second, "issue_us", "4")
#define TWO_WITH(second, model, us)                                                                                    \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": "                                                                                                   \
    "\"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}], \"devices\": [{\"id\": \"A\", \"type\": \"gpu\", "           \
    "\"memory\": "                                                                                                     \
    "\"a\", \"lanes\": 2}, {\"id\": \"B\", \"type\": \"" second                                                        \
    "\", \"memory\": \"b\"}], \"routes\": [{\"from\": \"*\", "                                                         \
    "\"to\": \"*\", \"bandwidth_gbs\": 1}], \"model\": {\"" model "\": " us "}}"

/* x and y begin at once, and z when x has ended, as both are of one GPU; the host needs 4 us for the copy and 4 for its
 * wait, 4 for that of w: it comes to the copy at 8, to w at 12. Were the second device no GPU, all would be given out
 * at once. */
START_TEST(issuing)
{
    static const char *const machines[] = { TWO("gpu"), TWO("cpu") };
    static const int64_t z_at[] = { 2, 2 }, copy_at[] = { 8, 3 }, w_at[] = { 12, 4 };
    for (int i = 0; i < 2; i++) {
        gantry_schedule *s = hand_new(machines[i]);
        uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 0), copies = copy_lane(s, 0), l2 = compute_lane(s, 1);
        uint32_t x = hand_launch(s, "x", l0, 2), y = hand_launch(s, "y", l2, 1), z = hand_launch(s, "z", l1, 1);
        uint32_t c = hand_move(s, copies, A, B, 1000), w = hand_launch(s, "w", l2, 1);
        hand_wait(s, x, z);
        hand_wait(s, z, c);
        hand_wait(s, c, w);
        run(s);
        spans(s, x, 0, US(2));
        spans(s, y, 0, US(1));
        spans(s, z, US(z_at[i]), US(z_at[i] + 1));
        spans(s, c, US(copy_at[i]), US(copy_at[i] + 1));
        spans(s, w, US(w_at[i]), US(w_at[i] + 1));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Two computers of two GPUs each. */
#define COMPUTERS_BY(far)                                                                                              \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, "                              \
    "{\"id\": \"a\", \"capacity\": \"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}, "                               \
    "{\"id\": \"other\", \"capacity\": \"1TiB\", \"rank\": 1}, {\"id\": \"c\", \"capacity\": \"1TiB\", \"rank\": 1}, " \
    "{\"id\": \"d\", \"capacity\": \"1TiB\", \"rank\": 1}], \"devices\": ["                                            \
    "{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\"}, {\"id\": \"B\", \"type\": \"gpu\", \"memory\": \"b\"}, "   \
    "{\"id\": \"C\", \"type\": \"gpu\", \"memory\": \"c\"}, {\"id\": \"D\", \"type\": \"gpu\", \"memory\": \"d\"}], "  \
    "\"routes\": [{\"from\": [\"host\", \"a\", \"b\"], \"to\": [\"host\", \"a\", \"b\"], \"bandwidth_gbs\": 1}, "      \
    "{\"from\": [\"other\", \"c\", \"d\"], \"to\": [\"other\", \"c\", \"d\"], \"bandwidth_gbs\": 1}, "                 \
    "{\"from\": [\"host\", \"a\", \"b\"], \"to\": [" far "], \"bandwidth_gbs\": 1, "                                   \
    "\"network\": true, \"both\": true}], \"model\": {\"issue_us\": 4}}"
#define COMPUTERS COMPUTERS_BY("\"other\", \"c\", \"d\"")

/* Each computer has a host of its own: work that goes back and forth between the GPUs of one is given out as if there
 * were no other. Its first copy is reached after its wait and itself, at 8 us, and what waits for that at 12. */
static void issue_on_two(const char *machine)
{
    gantry_schedule *s = hand_new(machine);
    enum { A_MEMORY = 1, B_MEMORY, OTHER, C_MEMORY, D_MEMORY };
    const uint32_t from[] = { A_MEMORY, C_MEMORY }, to[] = { B_MEMORY, D_MEMORY };
    uint32_t w[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t first = compute_lane(s, 2 * i), copies = copy_lane(s, 2 * i), second = compute_lane(s, 2 * i + 1);
        uint32_t x = hand_launch(s, "x", first, 2), c = hand_move(s, copies, from[i], to[i], 1000);
        w[i] = hand_launch(s, "w", second, 1);
        hand_wait(s, x, c);
        hand_wait(s, c, w[i]);
    }
    run(s);
    for (uint32_t i = 0; i < 2; i++)
        spans(s, w[i], US(12), US(13));
    gantry_schedule_free(s);
}

START_TEST(issuing_on_two_computers)
{
    issue_on_two(COMPUTERS);
}
END_TEST

/* A network that leads to the host memory of the other computer only: what is behind that is reached by way of it. */
START_TEST(issuing_behind_a_host)
{
    issue_on_two(COMPUTERS_BY("\"other\""));
}
END_TEST

/* Messages from the other computer to one whose GPUs wait for each other, by a copy over the network, by a wait behind
 * it and by one of a copy between GPUs, are none of those waits: w is reached at 12 us, as if they were not there. */
START_TEST(issuing_beside_messages)
{
    gantry_schedule *s = hand_new(COMPUTERS);
    uint32_t y = hand_launch(s, "y", compute_lane(s, 2), 2), n = hand_move(s, copy_lane(s, 2), 4, 1, 1000),
             z = hand_launch(s, "z", compute_lane(s, 0), 1);
    uint32_t x = hand_launch(s, "x", compute_lane(s, 0), 2), c = hand_move(s, copy_lane(s, 0), 1, 2, 1000),
             w = hand_launch(s, "w", compute_lane(s, 1), 1);
    hand_wait(s, y, n);
    hand_wait(s, n, z);
    hand_wait(s, x, c);
    hand_wait(s, y, c);
    hand_wait(s, c, w);
    run(s);
    spans(s, n, US(2), US(3));
    spans(s, z, US(3), US(4));
    spans(s, c, US(8), US(9));
    spans(s, w, US(12), US(13));
    gantry_schedule_free(s);
}
END_TEST

/* Two waits of each host for its second GPU, in whatever order the devices are. */
START_TEST(issuing_a_collective)
{
    const uint32_t orders[][4] = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 3, 0, 2, 1 } };
    for (size_t i = 0; i < 3; i++) {
        gantry_schedule *s = hand_new(COMPUTERS);
        uint32_t lane[4];
        for (uint32_t k = 0; k < 4; k++)
            lane[k] = compute_lane(s, orders[i][k]);
        uint32_t op = hand_collective(s, GANTRY_ALL_REDUCE, 4, lane, 3);
        run(s);
        spans(s, op, US(8), US(11));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Kernels that meet by counters wait for their peers by themselves. So what y of the second GPU has done need not be
 * told the first, nor z of the second of the end: the op begins with the end of x and z with its own, and the host
 * gives nothing out bit by bit. As "two_shot" it waits for the host, 4 us for what y tells and 8 for its lane on the
 * second, and z for what it is told, 3 us after its end; which is also later than the 16 us at which the host has come
 * to it. A third GPU, which the op is not on, is told in any case. */
#define MEETS                                                                                                          \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": \"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}, {\"id\": \"c\", \"capacity\": \"1TiB\"}], "     \
    "\"devices\": [{\"id\": \"A\", \"type\": \"gpu\", \"memory\": \"a\", \"signal_us\": 3}, {\"id\": \"B\", "          \
    "\"type\": \"gpu\", \"memory\": \"b\", \"signal_us\": 3}, {\"id\": \"C\", \"type\": \"gpu\", "                     \
    "\"memory\": \"c\", \"signal_us\": 3}], \"routes\": [{\"from\": \"*\", \"to\": \"*\", \"bandwidth_gbs\": 1}], "    \
    "\"model\": {\"issue_us\": 4}}"

START_TEST(meeting_by_counters)
{
    static const struct {
        uint8_t algorithm;
        bool third;
        int64_t begin, z;
    } cases[] = { { GY_ALGORITHM_COUNTERS, false, 5, 8 },
                  { GY_ALGORITHM_TWO_SHOT, false, 12, 18 },
                  { GY_ALGORITHM_COUNTERS, true, 5, 8 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gantry_schedule *s = hand_new(MEETS);
        uint32_t lane[] = { compute_lane(s, 0), compute_lane(s, 1) };
        uint32_t x = hand_launch(s, "x", lane[0], 5), y = hand_launch(s, "y", lane[1], 2);
        uint32_t op = hand_collective(s, GANTRY_ALL_REDUCE, 2, lane, 3), z = hand_launch(s, "z", lane[1], 1), w = 0;
        s->ops.at[op].algorithm = cases[i].algorithm;
        hand_wait(s, x, op);
        hand_wait(s, y, op);
        hand_wait(s, op, z);
        if (cases[i].third) {
            w = hand_launch(s, "w", compute_lane(s, 2), 1);
            hand_wait(s, op, w);
        }
        run(s);
        spans(s, op, US(cases[i].begin), US(cases[i].begin + 3));
        spans(s, z, US(cases[i].z), US(cases[i].z + 1));
        if (cases[i].third)
            spans(s, w, US(11), US(12)); /* told at 8, which is later than the 4 us of the host */
        gantry_schedule_free(s);
    }
}
END_TEST

/* GPUs of two computers wait for each other by messages; on none of them does a GPU wait for another, so that its work
 * goes out at once. */
START_TEST(issuing_over_a_network)
{
    gantry_schedule *s = hand_new(COMPUTERS);
    uint32_t first = compute_lane(s, 0), copies = copy_lane(s, 0), second = compute_lane(s, 2);
    uint32_t x = hand_launch(s, "x", first, 2), c = hand_move(s, copies, 1, 4, 1000),
             w = hand_launch(s, "w", second, 1);
    hand_wait(s, x, c);
    hand_wait(s, c, w);
    run(s);
    spans(s, c, US(2), US(3));
    spans(s, w, US(3), US(4));
    gantry_schedule_free(s);
}
END_TEST

/* Lists of ops of no length on two GPUs, each op behind the lanes beside its own; the first and last of each GPU wait
 * for the other, too. A step gives out the same waits from GPU to GPU however many lanes there are: 2 of 4 us. */
START_TEST(issuing_many_lanes)
{
    enum { STEPS = 10, MOST = 8 };
    for (int lanes = 2; lanes <= MOST; lanes *= 2) {
        gantry_schedule *s = hand_new(TWO("gpu"));
        uint32_t lane[2 * MOST], last[2 * MOST] = { 0 }, now[2 * MOST] = { 0 };
        for (int i = 0; i < 2 * lanes; i++)
            lane[i] = compute_lane(s, i >= lanes);
        for (int step = 0; step < STEPS; step++) {
            for (int i = 0; i < 2 * lanes; i++) {
                now[i] = hand_launch(s, "x", lane[i], 0);
                if (step && i > 0)
                    hand_wait(s, last[i - 1], now[i]);
                if (step && i < 2 * lanes - 1)
                    hand_wait(s, last[i + 1], now[i]);
            }
            memcpy(last, now, sizeof last);
        }
        run(s);
        for (int i = 0; i < 2 * lanes; i++) { /* of the last step; in the order of positions */
            int64_t at = 8 * (STEPS - 2) + (i < lanes - 1 ? 0 : i == lanes - 1 ? 4 : 8);
            spans(s, last[i], US(at), US(at));
        }
        gantry_schedule_free(s);
    }
}
END_TEST

/* Replayed in streams, the host comes to an op every 3 us, whichever device it is for; a graph goes out at once. */
START_TEST(submitting)
{
    static const gy_replay replays[] = { GY_REPLAY_STREAM, GY_REPLAY_GRAPH };
    static const int64_t x_at[] = { 3, 0 }, y_at[] = { 6, 0 }, z_at[] = { 9, 5 };
    for (int i = 0; i < 2; i++) {
        gantry_schedule *s = hand_new(TWO_WITH("gpu", "submit_us", "3"));
        s->replay = replays[i];
        uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 1);
        uint32_t x = hand_launch(s, "x", l0, 5), y = hand_launch(s, "y", l1, 1), z = hand_launch(s, "z", l0, 1);
        run(s);
        spans(s, x, US(x_at[i]), US(x_at[i] + 5));
        spans(s, y, US(y_at[i]), US(y_at[i] + 1));
        spans(s, z, US(z_at[i]), US(z_at[i] + 1));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Ops of 5 us that go to and fro. One graph for each GPU: the second costs 3 us ahead of all, and who waits for the
 * other begins 2 us later. By edges of one graph, where a gate costs as much as these, and where nobody knows: the host
 * gives out a wait every 30 us. */
START_TEST(graphs_of_gpus)
{
    static const char *const machines[] = {
        TWO_WITH("gpu", "issue_us", "30, \"submit_us\": 3, \"edge_us\": 20, \"gate_us\": 2"),
        TWO_WITH("gpu", "issue_us", "30, \"submit_us\": 3, \"edge_us\": 20, \"gate_us\": 20"),
        TWO_WITH("gpu", "issue_us", "30, \"submit_us\": 3"),
        TWO_WITH("gpu", "edge_us", "20, \"gate_us\": 2"), /* nothing else is known that ops wait for */
    };
    enum { HOPS = 6 };
    for (int i = 0; i < 4; i++) {
        gantry_schedule *s = hand_new(machines[i]);
        uint32_t lane[] = { compute_lane(s, 0), compute_lane(s, 1) }, op[HOPS];
        s->replay = GY_REPLAY_GRAPH;
        for (int k = 0; k < HOPS; k++) {
            op[k] = hand_launch(s, "x", lane[k % 2], 5);
            if (k)
                hand_wait(s, op[k - 1], op[k]);
        }
        run(s);
        for (int k = 0; k < HOPS; k++) {
            int64_t at = i == 0 ? 3 + 7 * k : i == 3 ? 7 * k : 30 * k;
            spans(s, op[k], US(at), US(at + 5));
        }
        gy_sim_start starts[2];
        gantry_error err = { 0 };
        s->in_flight = 1;
        ck_assert_msg(!gy_sim_run_starts(s, 2, starts, &err), "%s", err.text);
        ck_assert_int_eq(starts[0].end, s->makespan);
        gantry_schedule_free(s);
    }
}
END_TEST

#define TWO_GPUS(kernel_bytes, model)                                                                                  \
    "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": \"1TiB\"}, {\"id\": \"a\", "              \
    "\"capacity\": "                                                                                                   \
    "\"1TiB\"}, {\"id\": \"b\", \"capacity\": \"1TiB\"}], \"devices\": [{\"id\": \"A\", \"type\": \"gpu\", "           \
    "\"memory\": "                                                                                                     \
    "\"a\", \"lanes\": 2, \"signal_us\": 4}, {\"id\": \"B\", \"type\": \"gpu\", \"memory\": \"b\", \"lanes\": 2, "     \
    "\"signal_us\": 4}], \"routes\": [{\"from\": \"*\", \"to\": \"*\", \"bandwidth_gbs\": 1, "                         \
    "\"kernel_bytes\": " kernel_bytes "}]" model "}"

/* Kernels that wait for each other to and fro, and a copy of 1,000 bytes to the host between two of them. Where each
 * GPU has a graph of its own a copy that a kernel makes is told of as a kernel is, and an engine takes 4 us. */
START_TEST(small_copies)
{
    static const char *const machines[] = {
        TWO_GPUS("999", ", \"model\": {\"edge_us\": 20, \"gate_us\": 2}"),
        TWO_GPUS("1000", ", \"model\": {\"edge_us\": 20, \"gate_us\": 2}"),
        TWO_GPUS("1000", ""),
    };
    enum { HOPS = 6 };
    for (int i = 0; i < 3; i++) {
        gantry_schedule *s = hand_new(machines[i]);
        uint32_t lane[] = { compute_lane(s, 0), compute_lane(s, 1) }, copies = copy_lane(s, 1), op[HOPS];
        int64_t hop = i == 2 ? 4 : 2, told = i == 1 ? 0 : 4, at = (HOPS - 1) * (5 + hop) + 5;
        s->replay = GY_REPLAY_GRAPH;
        for (int k = 0; k < HOPS; k++) {
            op[k] = hand_launch(s, "x", lane[k % 2], 5);
            if (k)
                hand_wait(s, op[k - 1], op[k]);
        }
        uint32_t c = hand_move(s, copies, 2, 0, 1000), y = hand_launch(s, "y", lane[1], 1);
        hand_wait(s, op[HOPS - 1], c);
        hand_wait(s, c, y);
        run(s);
        spans(s, c, US(at + told), US(at + told + 1));
        spans(s, y, US(at + 2 * told + 1), US(at + 2 * told + 2));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Nothing begins before the start has been given out. */
START_TEST(starting)
{
    gantry_schedule *s = hand_new(TWO_WITH("gpu", "start_us", "11"));
    uint32_t l0 = compute_lane(s, 0), l1 = compute_lane(s, 1);
    uint32_t x = hand_launch(s, "x", l0, 5), y = hand_launch(s, "y", l1, 1), z = hand_launch(s, "z", l1, 2);
    hand_wait(s, x, z);
    run(s);
    spans(s, x, US(11), US(16));
    spans(s, y, US(11), US(12));
    spans(s, z, US(16), US(18));
    gantry_schedule_free(s);
}
END_TEST

/* One graph over two GPUs is given out in 11 us and 4 more; a graph of one alone, and what is given out op by op,
 * in 11.
 */
START_TEST(starting_on_several)
{
    static const gy_replay replays[] = { GY_REPLAY_AUTO, GY_REPLAY_GRAPH, GY_REPLAY_STREAM };
    for (int i = 0; i < 6; i++) {
        gantry_schedule *s = hand_new(TWO_WITH("gpu", "start_us", "11, \"another_us\": 4"));
        uint32_t l0 = compute_lane(s, 0), l1 = i < 3 ? compute_lane(s, 1) : l0;
        uint32_t x = hand_launch(s, "x", l0, 5), y = hand_launch(s, "y", l1, 1);
        int64_t begin = i < 2 ? 15 : 11;
        s->replay = replays[i % 3];
        run(s);
        spans(s, x, US(begin), US(begin + 5));
        spans(s, y, US(i < 3 ? begin : begin + 5), US(i < 3 ? begin + 1 : begin + 6));
        gantry_schedule_free(s);
    }
}
END_TEST

/* The collective begins when the later of its two lanes is free (10 us), and holds both for 3 us. */
START_TEST(collective)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t l[2] = { compute_lane(s, 0), compute_lane(s, 1) };
    hand_launch(s, "x", l[0], 10);
    hand_launch(s, "y", l[1], 4);
    uint32_t all = hand_collective(s, GANTRY_ALL_REDUCE, 2, l, 3);
    uint32_t p = hand_launch(s, "p", l[0], 1), q = hand_launch(s, "q", l[1], 2);
    run(s);
    spans(s, all, US(10), US(13));
    spans(s, p, US(13), US(14));
    spans(s, q, US(13), US(15));
    gantry_schedule_free(s);
}
END_TEST

/* A copy alone: 2 us of latency, then 100,000 bytes at 10,000 a microsecond. */
START_TEST(one_copy)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000);
    run(s);
    spans(s, x, 0, US(12));
    gantry_schedule_free(s);
}
END_TEST

/* A batch of three is one copy of all of their bytes behind the launch of its kernel, of 4 us: 4 + 2 + 30. What comes
 * behind in the lane begins when it has ended. */
START_TEST(copies_in_a_batch)
{
    gantry_schedule *s = hand_new(PORTS(8, ", \"model\": {\"launch_us\": 4}"));
    uint32_t lane = copy_lane(s, 0), first = hand_move(s, lane, A, B, 100000);
    hand_move(s, lane, A, B, 100000);
    hand_move(s, lane, A, B, 100000);
    s->ops.at[first].batch = 3;
    s->ops.at[first + 1].joined = s->ops.at[first + 2].joined = true;
    s->ops.at[first + 1].duration = s->ops.at[first + 2].duration = 0;
    uint32_t next = hand_move(s, lane, A, B, 100000);
    run(s);
    spans(s, first, 0, US(36));
    spans(s, first + 1, US(36), US(36));
    spans(s, first + 2, US(36), US(36));
    spans(s, next, US(36), US(48));
    gantry_schedule_free(s);
}
END_TEST

/* Both flows begin at 2 us and get 5,000 bytes a microsecond each: 20 us. */
START_TEST(two_copies_over_one_link)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000), y = hand_move(s, copy_lane(s, 0), A, B, 100000);
    run(s);
    spans(s, x, 0, US(22));
    spans(s, y, 0, US(22));
    gantry_schedule_free(s);
}
END_TEST

/*
 * y begins 5 us later. x alone from 2 to 7: 50,000 bytes moved. From 7 on both at 5,000 a microsecond: x has 50,000
 * left, ends at 17, when y has moved 50,000; y ends the other 50,000 alone in 5 us, at 22.
 */
START_TEST(a_flow_joins_and_leaves)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t lane = copy_lane(s, 0);
    uint32_t x = hand_move(s, lane, A, B, 100000), delay = hand_launch(s, "delay", compute_lane(s, 0), 5);
    uint32_t y = hand_move(s, copy_lane(s, 0), A, B, 100000);
    hand_wait(s, delay, y);
    run(s);
    spans(s, x, 0, US(17));
    spans(s, y, US(5), US(22));
    gantry_schedule_free(s);
}
END_TEST

/* Only flows share: the latency of y (10 to 12) overlaps the flow of x (2 to 12), its flow (12 to 22) does not. */
START_TEST(latency_shares_nothing)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000), delay = hand_launch(s, "delay", compute_lane(s, 0), 10);
    uint32_t y = hand_move(s, copy_lane(s, 0), A, B, 100000);
    hand_wait(s, delay, y);
    run(s);
    spans(s, x, 0, US(12));
    spans(s, y, US(10), US(22));
    gantry_schedule_free(s);
}
END_TEST

/* Three senders into d: a third of 10 GB/s each: 30 us and the latency. One to all through a.out: the same. */
START_TEST(all_to_one_and_one_to_all)
{
    for (int way = 0; way < 2; way++) {
        gantry_schedule *s = hand_new(PORTS(8, ""));
        uint32_t op[3];
        for (uint32_t i = 0; i < 3; i++)
            op[i] =
                way ? hand_move(s, copy_lane(s, 0), A, B + i, 100000) : hand_move(s, copy_lane(s, i), A + i, D, 100000);
        run(s);
        for (int i = 0; i < 3; i++)
            ends(s, op[i], US(32));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Store and forward: a -> b, then b -> c, 12 us each. */
START_TEST(relay)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t v = hand_value(s, "x", 100000, 1), i[3];
    for (uint32_t k = 0; k < 3; k++)
        i[k] = hand_instance(s, v, A + k, 0, 100000);
    uint32_t first = hand_copy(s, copy_lane(s, 0), i[0], i[1]), second = hand_copy(s, copy_lane(s, 1), i[1], i[2]);
    hand_wait(s, first, second);
    run(s);
    spans(s, first, 0, US(12));
    spans(s, second, US(12), US(24));
    gantry_schedule_free(s);
}
END_TEST

/*
 * a -> host -> b and c -> host -> d at once. Up: both through host.in, 20 us after the latency: 22. Down: both through
 * host.out, 22 to 44. (With a host port each they would end at 24.)
 */
START_TEST(staged_through_a_shared_host)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t op[2][2];
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t v = hand_value(s, "x", 100000, 1), from = hand_instance(s, v, A + 2 * k, 0, 100000);
        uint32_t via = hand_instance(s, v, HOST, 0, 100000), to = hand_instance(s, v, B + 2 * k, 0, 100000);
        op[k][0] = hand_copy(s, copy_lane(s, 2 * k), from, via);
        op[k][1] = hand_copy(s, copy_lane(s, 2 * k + 1), via, to);
        hand_wait(s, op[k][0], op[k][1]);
    }
    run(s);
    for (int k = 0; k < 2; k++) {
        spans(s, op[k][0], 0, US(22));
        spans(s, op[k][1], US(22), US(44));
    }
    gantry_schedule_free(s);
}
END_TEST

/* a -> b and b -> a use four different ports: neither slows the other. */
START_TEST(full_duplex)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000), y = hand_move(s, copy_lane(s, 1), B, A, 100000);
    run(s);
    spans(s, x, 0, US(12));
    spans(s, y, 0, US(12));
    gantry_schedule_free(s);
}
END_TEST

/*
 * Max-min with caps 2, 4, 10 over a resource of 12: the equal share is 4; the first takes only its 2, the second its 4,
 * the third gets what is left, 6. So 20,000, 40,000 and 120,000 bytes: the first two end at 10 us, with 60,000 of the
 * third to go at its cap of 10: 16 us.
 */
START_TEST(unequal_caps)
{
    gantry_schedule *s = hand_new(THREE(12, 1, 2, "\"L1\"", 4, "\"L1\"", 10, "\"L1\""));
    uint32_t x = hand_move(s, copy_lane(s, 0), 1, 2, 20000), y = hand_move(s, copy_lane(s, 0), 1, 3, 40000);
    uint32_t z = hand_move(s, copy_lane(s, 0), 2, 3, 120000);
    run(s);
    spans(s, x, 0, US(10));
    spans(s, y, 0, US(10));
    spans(s, z, 0, US(16));
    gantry_schedule_free(s);
}
END_TEST

/*
 * The textbook network: x over L1 (10), y over L1 and L2, z over L2 (20). L1 is the first bottleneck: x = y = 5; z gets
 * the rest of L2, 15. 50,000, 50,000 and 150,000 bytes all end at 10 us; 165,000 of z: the last 15,000 alone at
 * 20: 10.75.
 */
START_TEST(two_bottlenecks)
{
    for (int more = 0; more < 2; more++) {
        gantry_schedule *s = hand_new(THREE(10, 20, 20, "\"L1\"", 20, "\"L1\", \"L2\"", 20, "\"L2\""));
        uint32_t x = hand_move(s, copy_lane(s, 0), 1, 2, 50000), y = hand_move(s, copy_lane(s, 0), 1, 3, 50000);
        uint32_t z = hand_move(s, copy_lane(s, 0), 2, 3, more ? 165000 : 150000);
        run(s);
        spans(s, x, 0, US(10));
        spans(s, y, 0, US(10));
        spans(s, z, 0, more ? US(10) + 750000 : US(10));
        gantry_schedule_free(s);
    }
}
END_TEST

/* A resource slower than the route bounds a copy that is alone, too: 100,000 bytes over 5 GB/s. */
START_TEST(a_slow_resource)
{
    gantry_schedule *s = hand_new(THREE(5, 1, 10, "\"L1\"", 1, "\"L2\"", 1, "\"L2\""));
    uint32_t x = hand_move(s, copy_lane(s, 0), 1, 2, 100000);
    run(s);
    spans(s, x, 0, US(20));
    gantry_schedule_free(s);
}
END_TEST

/* With contention off both copies take 12 us, and one copy engine is no limit. */
START_TEST(contention_off)
{
    gantry_schedule *s = hand_new(PORTS(1, ", \"model\": {\"contention\": \"off\"}"));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000), y = hand_move(s, copy_lane(s, 0), A, B, 100000);
    run(s);
    spans(s, x, 0, US(12));
    spans(s, y, 0, US(12));
    gantry_schedule_free(s);
}
END_TEST

/*
 * One engine, copies a -> b, a -> c and a -> d of 12 us each. The one of position 3 is ready at 0, position 2 only at 1
 * us: so position 1 runs first (0 to 12), then 3 (12 to 24), then 2 (24 to 36).
 */
START_TEST(copy_engines)
{
    gantry_schedule *s = hand_new(PORTS(1, ""));
    uint32_t delay = hand_launch(s, "delay", compute_lane(s, 0), 1);
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 100000), y = hand_move(s, copy_lane(s, 0), A, C, 100000);
    uint32_t z = hand_move(s, copy_lane(s, 0), A, D, 100000);
    hand_wait(s, delay, y);
    run(s);
    spans(s, x, 0, US(12));
    spans(s, z, US(12), US(24));
    spans(s, y, US(24), US(36));
    gantry_schedule_free(s);
}
END_TEST

/* Two computers with a network of 100 us and 1 GB/s, a copy engine each: a message of 10,000 bytes is sent in 10 us.
 * The next goes behind its bytes, not behind its latency, and comes 10 us after it. A node waits until its rows have
 * come, and so does a message the other way; but a copy within the first computer, and a node there that writes rows
 * which are on their way, wait until they are sent. */
START_TEST(messages)
{
    gantry_schedule *s = hand_new(
        "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"a\", \"capacity\": 1000000}, {\"id\": \"b\", "
        "\"capacity\": 1000000, \"rank\": 1}], \"devices\": [{\"id\": \"A\", \"memory\": \"a\", "
        "\"copy_engines\": 1}, {\"id\": \"B\", \"memory\": \"b\", \"copy_engines\": 1}], \"resources\": "
        "{\"out\": 1, \"back\": 1}, \"routes\": [{\"from\": \"a\", \"to\": \"b\", \"latency_us\": 100, "
        "\"bandwidth_gbs\": 1, \"via\": [\"out\"], \"network\": true}, {\"from\": \"b\", \"to\": \"a\", "
        "\"latency_us\": 100, \"bandwidth_gbs\": 1, \"via\": [\"back\"], \"network\": true}, {\"from\": \"a\", "
        "\"to\": \"a\", \"latency_us\": 1, \"bandwidth_gbs\": 10}]}");
    uint32_t lane = copy_lane(s, 0), x = hand_move(s, lane, 0, 1, 10000), y = hand_move(s, lane, 0, 1, 10000);
    uint32_t near = hand_move(s, lane, 0, 0, 10000), writes = hand_launch(s, "w", compute_lane(s, 0), 5);
    uint32_t z = hand_move(s, lane, 0, 1, 10000), back = hand_move(s, lane, 1, 0, 10000);
    uint32_t node = hand_launch(s, "n", compute_lane(s, 1), 5);
    hand_wait(s, x, node);
    hand_wait(s, x, writes);
    run(s);
    spans(s, x, 0, US(110));
    spans(s, y, US(10), US(120));
    spans(s, near, US(20), US(22));
    spans(s, writes, US(10), US(15));
    spans(s, z, US(22), US(132));
    spans(s, node, US(110), US(115));
    spans(s, back, US(132), US(242));
    gantry_schedule_free(s);
}
END_TEST

/* Copies in compute lanes need no engine (a kernel does them): both at once, sharing a.out. */
START_TEST(copies_by_kernels)
{
    gantry_schedule *s = hand_new(PORTS(1, ""));
    uint32_t x = hand_move(s, compute_lane(s, 0), A, B, 100000), y = hand_move(s, compute_lane(s, 0), A, C, 100000);
    run(s);
    spans(s, x, 0, US(22));
    spans(s, y, 0, US(22));
    gantry_schedule_free(s);
}
END_TEST

/* Within a memory: the local route, given as 1 us + 20 GB/s, so 100,000 bytes take 6 us; nothing is shared. */
START_TEST(local_copies)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}], "
                 "\"devices\": [{\"id\": \"cpu\", \"memory\": \"host\", \"copy_engines\": 2}], "
                 "\"routes\": [{\"from\": \"host\", \"to\": \"host\", \"latency_us\": 1, \"bandwidth_gbs\": 20}]}");
    uint32_t x = hand_move(s, copy_lane(s, 0), 0, 0, 100000), y = hand_move(s, copy_lane(s, 0), 0, 0, 100000);
    run(s);
    spans(s, x, 0, US(6));
    spans(s, y, 0, US(6));
    gantry_schedule_free(s);
}
END_TEST

/* Nothing to move: the latency. Also beside a copy that moves something. */
START_TEST(empty_copies)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_move(s, copy_lane(s, 0), A, B, 0), y = hand_move(s, copy_lane(s, 0), A, B, 100000);
    run(s);
    spans(s, x, 0, US(2));
    spans(s, y, 0, US(12));
    gantry_schedule_free(s);
}
END_TEST

/* Whatever the size, a copy that nothing slows takes gy_route_time to the picosecond. */
START_TEST(alone_is_exact)
{
    for (int64_t bytes = 1, step = 0; bytes < INT64_C(1) << 36; bytes = bytes * 7 / 3 + 1, step++) {
        gantry_schedule *s = hand_new(PORTS(8, ""));
        uint32_t x = hand_move(s, copy_lane(s, 0), A, B, bytes);
        run(s);
        ck_assert_int_eq(s->ops.at[x].end, gy_route_time(s->machine, gy_machine_route(s->machine, A, B), bytes));
        gantry_schedule_free(s);
    }
}
END_TEST

/* Rates are whole bytes per second: 1000 bytes in 3 s are 333.3, rounded up 334, which would take 2.994 s. Alone it is
 * 3 s. */
START_TEST(rounded_rates_cost_nothing)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}, {\"id\": \"a\", "
                 "\"capacity\": 1000000}], "
                 "\"devices\": [{\"id\": \"A\", \"memory\": \"a\"}], \"resources\": {\"bus\": 1}, \"routes\": "
                 "[{\"from\": \"host\", "
                 "\"to\": \"a\", \"points\": [[0, 0], [1000, 3000000]], \"via\": [\"bus\"], \"both\": true}]}");
    uint32_t x = hand_move(s, copy_lane(s, 0), 0, 1, 1000);
    run(s);
    spans(s, x, 0, US(3000000));
    gantry_schedule_free(s);
}
END_TEST

/* More flows than bytes per second: each still gets 1 byte a second and the simulation ends. 0.000001 GB/s = 1000 B/s.
 */
START_TEST(starving_flows_end)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}, {\"id\": \"a\", "
                 "\"capacity\": 1000000}], \"devices\": [{\"id\": \"cpu\", \"memory\": \"host\", \"copy_engines\": "
                 "2000}], \"resources\": {\"r\": 0.000001}, \"routes\": [{\"from\": \"host\", \"to\": \"a\", "
                 "\"bandwidth_gbs\": 1, \"via\": [\"r\"], \"both\": true}]}");
    for (int i = 0; i < 1500; i++)
        hand_move(s, copy_lane(s, 0), 0, 1, 3);
    run(s);
    ck_assert_int_eq(s->makespan, 3 * 1000000 * GY_TICKS_PER_US);
    gantry_schedule_free(s);
}
END_TEST

/* x (position 0) waits for y (1) by an event; y is behind x in the lane. */
START_TEST(cycles_are_named)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t lane = compute_lane(s, 0), before = hand_launch(s, "before", compute_lane(s, 1), 1);
    uint32_t x = hand_launch(s, "x", lane, 1), y = hand_launch(s, "y", lane, 1);
    uint32_t after = hand_launch(s, "after", lane, 1);
    hand_wait(s, before, x);
    hand_wait(s, y, x);
    hand_wait(s, y, after);
    s->makespan = 42;
    s->ops.at[before].end = 43;
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_sim_run(s, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_nonnull(strstr(err.text, "ops wait for each other for ever"));
    ck_assert_ptr_nonnull(strstr(err.text, "op 1 \"x\""));
    ck_assert_ptr_nonnull(strstr(err.text, "op 2 \"y\""));
    ck_assert_ptr_null(strstr(err.text, "after"));
    ck_assert_int_eq(s->makespan, 42);
    ck_assert_int_eq(s->ops.at[before].end, 43);
    gy_sim_start out = { 5, 6 };
    ck_assert_int_eq(gy_sim_run_starts(s, 1, &out, NULL), GANTRY_E_SCHEDULE);
    ck_assert_int_eq(out.begin, 5);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(an_op_that_waits_for_itself)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    hand_launch(s, "fine", compute_lane(s, 0), 1);
    uint32_t x = hand_launch(s, "x", compute_lane(s, 0), 1);
    hand_wait(s, x, x);
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_sim_run(s, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_nonnull(strstr(err.text, "op 1 \"x\" which waits for op 1 again"));
    gantry_schedule_free(s);
}
END_TEST

START_TEST(copies_need_a_direct_route)
{
    gantry_schedule *s =
        hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}, {\"id\": \"a\", "
                 "\"capacity\": 1000000}, {\"id\": \"b\", \"capacity\": 1000000}], \"devices\": [{\"id\": \"A\", "
                 "\"memory\": \"a\"}], \"routes\": [{\"from\": \"host\", \"to\": [\"a\", \"b\"], \"bandwidth_gbs\": 1, "
                 "\"both\": true}]}");
    hand_move(s, copy_lane(s, 0), 1, 2, 1000);
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_sim_run(s, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_nonnull(strstr(err.text, "from memory \"a\" to \"b\", between which there is no direct route"));
    gantry_schedule_free(s);
}
END_TEST

START_TEST(times_do_not_overflow)
{
    static const char *const names[] = { "x", "y", "z" };
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t lane = compute_lane(s, 0);
    for (int i = 0; i < 3; i++) {
        uint32_t op = hand_launch(s, names[i], lane, 1);
        s->ops.at[op].duration = GY_TICKS_MAX / 2;
    }
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_sim_run(s, &err), GANTRY_E_SCHEDULE);
    ck_assert_ptr_nonnull(strstr(err.text, "op 2 \"z\" would end more than 26.7 days after the start"));
    gantry_schedule_free(s);
}
END_TEST

/* ---- several starts ---- */

/* x (10 us, lane 0), then y (10 us, lane 1). One at a time: 20, 40, 60. Two in flight: x of the next start begins when
 * the lane is free: ends 20, 30, 40. Two in flight with y -> x at distance 1: 20, 40, 60 again. At distance 2: 20, 30,
 * 50, 60 (start 2 begins after start 0 ended, at 20, anyway: x 20-30, y 30-40; so 20, 30, 40, 50). */
static gantry_schedule *two_stages(uint32_t in_flight, uint32_t distance)
{
    gantry_schedule *s = hand_new(PORTS(8, ""));
    uint32_t x = hand_launch(s, "x", compute_lane(s, 0), 10), y = hand_launch(s, "y", compute_lane(s, 1), 10);
    hand_wait(s, x, y);
    if (distance > 0)
        hand_sync(s, y, x, distance, GY_CARRIER_EVENT, GY_WHY_REUSE);
    s->in_flight = in_flight;
    return s;
}

START_TEST(starts)
{
    static const struct {
        uint32_t in_flight, distance;
        int end[4];
    } cases[] = {
        { 1, 0, { 20, 40, 60, 80 } }, { 2, 0, { 20, 30, 40, 50 } }, { 2, 1, { 20, 40, 60, 80 } },
        { 2, 2, { 20, 30, 40, 50 } }, { 9, 0, { 20, 30, 40, 50 } },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        gantry_schedule *s = two_stages(cases[c].in_flight, cases[c].distance);
        gy_sim_start out[4];
        ck_assert_int_eq(gy_sim_run_starts(s, 4, out, NULL), GANTRY_OK);
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(out[i].end, US(cases[c].end[i]));
            ck_assert_int_eq(out[i].begin, US(cases[c].end[i] - 20));
        }
        gantry_error err = { 0 };
        ck_assert_int_eq(gy_sim_run_starts(s, 0, out, &err), GANTRY_E_INVALID);
        gantry_schedule_free(s);
    }
}
END_TEST

/* As above, but the host takes its time: 11 us until a start begins (and sees the end of the last), or 3 us for each op
 * in streams. A start that waits for another is given out only then. */
START_TEST(starts_are_given_out)
{
    static const struct {
        gy_replay replay;
        gy_ticks start, submit;
        uint32_t in_flight;
        int begin[4], end[4];
    } cases[] = {
        { GY_REPLAY_GRAPH, US(11), US(3), 1, { 11, 42, 73, 104 }, { 31, 62, 93, 124 } },
        { GY_REPLAY_GRAPH, US(11), US(3), 2, { 11, 21, 42, 52 }, { 31, 41, 62, 72 } },
        { GY_REPLAY_STREAM, 0, US(3), 1, { 3, 26, 49, 72 }, { 23, 46, 69, 92 } },
        { GY_REPLAY_STREAM, 0, US(3), 4, { 3, 13, 23, 33 }, { 23, 33, 43, 53 } },
        { GY_REPLAY_STREAM, 0, US(12), 4, { 12, 36, 60, 84 }, { 34, 58, 82, 106 } },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        gantry_schedule *s = two_stages(cases[c].in_flight, 0);
        gantry_machine *m = (gantry_machine *)s->machine;
        gy_sim_start out[4];
        m->start = cases[c].start;
        m->submit = cases[c].submit;
        s->replay = cases[c].replay;
        ck_assert_int_eq(gy_sim_run_starts(s, 4, out, NULL), GANTRY_OK);
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(out[i].begin, US(cases[c].begin[i]));
            ck_assert_int_eq(out[i].end, US(cases[c].end[i]));
        }
        gantry_schedule_free(s);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *t = tcase_create("by hand");
    TTest const *const tests[] = { nothing,
                                   chain,
                                   launches_overlap,
                                   launches_in_one_lane,
                                   ops_share_a_device,
                                   events,
                                   signals,
                                   issuing,
                                   issuing_on_two_computers,
                                   issuing_behind_a_host,
                                   issuing_beside_messages,
                                   issuing_a_collective,
                                   meeting_by_counters,
                                   issuing_over_a_network,
                                   issuing_many_lanes,
                                   submitting,
                                   graphs_of_gpus,
                                   small_copies,
                                   starting,
                                   starting_on_several,
                                   collective,
                                   collective_and_copy_share,
                                   collectives_share,
                                   one_copy,
                                   two_copies_over_one_link,
                                   a_flow_joins_and_leaves,
                                   copies_in_a_batch,
                                   latency_shares_nothing,
                                   all_to_one_and_one_to_all,
                                   relay,
                                   staged_through_a_shared_host,
                                   full_duplex,
                                   unequal_caps,
                                   two_bottlenecks,
                                   a_slow_resource,
                                   contention_off,
                                   copy_engines,
                                   messages,
                                   copies_by_kernels,
                                   local_copies,
                                   empty_copies,
                                   alone_is_exact,
                                   rounded_rates_cost_nothing,
                                   starving_flows_end,
                                   cycles_are_named,
                                   an_op_that_waits_for_itself,
                                   copies_need_a_direct_route,
                                   times_do_not_overflow,
                                   starts,
                                   starts_are_given_out };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(t, tests[i]);
    tcase_add_loop_test(t, small_copies_share, 0, 2);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
