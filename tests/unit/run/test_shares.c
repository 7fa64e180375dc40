/* SPDX-License-Identifier: Apache-2.0 */
/* Portions of a GPU that follow from ops that overlapped: by hand, and of a device that is shared in another way. */
#include "run/shares.h"
#include "support/run_suite.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 400, GROUPS = 4 };
static gy_share_op op[MOST];
static size_t ops;
static double share[GROUPS];
static bool found[GROUPS];

static void reset(double prior)
{
    ops = 0;
    for (int i = 0; i < GROUPS; i++) {
        share[i] = prior;
        found[i] = false;
    }
}

static void add(uint32_t device, uint32_t group, double begin_us, double us, double alone_us)
{
    gy_share_op *o = &op[ops++];
    *o = (gy_share_op){ .device = device, .group = group, .alone_us = alone_us, .fixed = 0.5 };
    o->time = (gy_op_time){ (int64_t)(begin_us * 1e3 + 0.5), (int64_t)((begin_us + us) * 1e3 + 0.5) };
}

static void fit(void)
{
    ck_assert(gy_shares_fit(op, ops, share, found, GROUPS));
}

static void ck_near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) < 0.01, "%g, not %g", value, expected);
}

/* Two at once take twice as long: each takes the whole device. */
START_TEST(two_that_slow_each_other)
{
    reset(0.1);
    add(0, 0, 0, 20, 10);
    add(0, 0, 0, 20, 10);
    fit();
    ck_near(share[0], 1);
    ck_assert(found[0] && !found[1]);
}
END_TEST

/* Four at once, no slower than alone: a quarter each at most. Twice as slow: a half each. */
START_TEST(four_at_once)
{
    for (int slow = 1; slow <= 2; slow++) {
        reset(1);
        for (int i = 0; i < 4; i++)
            add(0, 0, 0, 10 * slow, 10);
        fit();
        ck_near(share[0], 0.25 * slow);
    }
}
END_TEST

/* Half of the device is an op's that says so itself: the other, which is half as fast as alone, would fill it. */
START_TEST(beside_a_known_one)
{
    reset(0.2);
    add(0, GY_NONE, 0, 20, 0);
    add(0, 1, 0, 20, 10);
    fit();
    ck_near(share[1], 1);
}
END_TEST

/* On a device of its own, no slower than alone: nothing is learned. Slower without others: it fills the device. */
START_TEST(one_alone)
{
    reset(0.3);
    add(0, 0, 0, 10, 10);
    add(1, 0, 0, 10, 10);
    add(2, 1, 0, 13, 10);
    add(3, 2, 0, 10, 0);
    fit();
    ck_near(share[0], 0.3);
    ck_near(share[1], 1);
    ck_assert(!found[0] && found[1] && !found[2]);
}
END_TEST

/* ---- a device that slows all of its ops alike ---- */

typedef struct job {
    uint32_t group;
    double left, begin;
} job;

static double uniform(unsigned short seed[3], double from, double to)
{
    return from + (to - from) * erand48(seed);
}

/* Six queues of ops of random groups, carried out by processor sharing in steps of 10 ns; what was used, in us. */
static double carry_out(unsigned short seed[3], const double *truth, const double *alone)
{
    enum { QUEUES = 6, EACH = 40 };
    job at[QUEUES];
    int done[QUEUES] = { 0 };
    double now = 0, used = 0;
    bool busy = true;
    for (int q = 0; q < QUEUES; q++)
        at[q] = (job){ (uint32_t)(erand48(seed) * GROUPS), 0, -1 };
    while (busy) {
        double sum = 0;
        busy = false;
        for (int q = 0; q < QUEUES; q++) {
            if (at[q].begin < 0 && done[q] < EACH)
                at[q] = (job){ at[q].group, alone[at[q].group], now };
            sum += at[q].begin < 0 ? 0 : truth[at[q].group];
        }
        now += 0.01;
        for (int q = 0; q < QUEUES; q++) {
            if (at[q].begin < 0)
                continue;
            busy = true;
            at[q].left -= 0.01 * (sum > 1 ? 1 / sum : 1);
            if (at[q].left > 0)
                continue;
            add(0, at[q].group, at[q].begin, now - at[q].begin, alone[at[q].group]);
            used += truth[at[q].group] * alone[at[q].group];
            at[q] = (job){ (uint32_t)(erand48(seed) * GROUPS), 0, -1 };
            done[q]++;
        }
    }
    return used;
}

/* The time that all ops take together, which a makespan follows from, comes out within a tenth, from any prior. */
START_TEST(shared_device)
{
    unsigned short seed[3] = { 7, 11, (unsigned short)_i };
    double truth[GROUPS], alone[GROUPS], used = 0;
    reset(_i % 2 ? 1 : 0.05);
    for (int i = 0; i < GROUPS; i++) {
        truth[i] = uniform(seed, 0.15, 1);
        alone[i] = uniform(seed, 5, 60);
    }
    double expected = carry_out(seed, truth, alone);
    fit();
    for (size_t i = 0; i < ops; i++)
        used += share[op[i].group] * op[i].alone_us;
    ck_assert_msg(fabs(used / expected - 1) < 0.1, "%g us, not %g", used, expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run: shares");
    TCase *c = tcase_create("shares");
    tcase_add_test(c, two_that_slow_each_other);
    tcase_add_test(c, four_at_once);
    tcase_add_test(c, beside_a_known_one);
    tcase_add_test(c, one_alone);
    tcase_add_loop_test(c, shared_device, 0, 20);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
