/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of random schedules: right ones are carried out by an interpreter, damaged ones are refused. */
#include "property/counters/damage.h"
#include "property/counters/interpret.h"
#include "schedule/check/verify.h"
#include "schedule/counters/counters.h"
#include "support/run_suite.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const policies[] = { "heft", "round-robin" };

typedef struct sample {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule; /* NULL: none for this seed */
} sample;

static sample make_sample(uint64_t seed)
{
    rng r = { seed * 991 };
    uint32_t devices = 2 + rng_below(&r, 2);
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_error err = { 0 };
    sample x = { .graph = make_graph(&r, devices), .machine = make_machine(&r, devices) };
    options.policy = policies[seed % 2];
    options.replay = "device";
    options.in_flight = seed % 3 == 0 ? 2 + (int)rng_below(&r, 2) : 0;
    options.objective = options.in_flight ? "period" : NULL;
    if (x.graph && gantry_schedule_new(&x.schedule, x.graph, x.machine, &options, &err)) {
        ck_assert_msg(!strstr(err.text, "rule ") && !strstr(err.text, "internal"), "seed %llu: %s",
                      (unsigned long long)seed, err.text);
        x.schedule = NULL;
    }
    if (x.schedule && !x.schedule->counters.at.count) {
        gantry_schedule_free(x.schedule);
        x.schedule = NULL;
    }
    return x;
}

static void free_sample(sample *x)
{
    gantry_schedule_free(x->schedule);
    gantry_machine_free(x->machine);
    gantry_graph_free(x->graph);
}

static gantry_schedule *copy_of(const gantry_schedule *s)
{
    gantry_schedule *c = clone_schedule(s);
    ck_assert_ptr_nonnull(c);
    c->replay = GY_REPLAY_DEVICE;
    return c;
}

/* Written, read and counted again, a schedule is the same, byte for byte. */
static void check_file(const gantry_schedule *s)
{
    char *text, *again;
    size_t length, length_again;
    gantry_schedule *read;
    ck_assert(!gantry_schedule_json(s, &text, &length, NULL));
    ck_assert(!gantry_schedule_parse(&read, text, length, NULL, NULL));
    for (int made = 0; made < 2; made++) {
        ck_assert(!gantry_schedule_json(read, &again, &length_again, NULL));
        ck_assert(length == length_again && memcmp(text, again, length) == 0);
        gantry_free(again);
        ck_assert(!gy_counters_make(read, NULL));
    }
    gantry_free(text);
    gantry_schedule_free(read);
}

START_TEST(test_right)
{
    enum { SAMPLES = 400, ORDERS = 6 };
    uint32_t samples = 0, waits = 0, between = 0, overlapping = 0;
    for (uint64_t seed = 1; samples < SAMPLES; seed++) {
        sample x = make_sample(seed);
        if (x.schedule) {
            const gantry_schedule *s = x.schedule;
            check_file(s);
            for (uint64_t order = 0; order < ORDERS; order++) {
                faults f = { .one_queue = order % 3 == 2, .cut = order % 3 == 1 ? 1 + (uint32_t)(seed % 7) : 0 };
                f.far = order % 2 ? 1 + (uint32_t)(seed % 255) : 0;
                const char *wrong = interpret(s, s->in_flight + 3, f, seed * 100 + order);
                ck_assert_msg(!wrong, "seed %llu, order %llu: %s", (unsigned long long)seed, (unsigned long long)order,
                              wrong);
            }
            samples++;
            overlapping += s->in_flight > 1;
            waits += (uint32_t)s->counters.wait.count;
            for (size_t i = 0; i < s->counters.wait.count; i++)
                between += s->counters.wait.at[i].distance > 0;
        }
        free_sample(&x);
    }
    printf("%u schedules (%u of them of overlapping starts), %u waits, %u of them from start to start\n", samples,
           overlapping, waits, between);
    ck_assert(overlapping > SAMPLES / 10 && waits > 4 * SAMPLES && between > SAMPLES / 4);
}
END_TEST

START_TEST(test_damaged)
{
    enum { SAMPLES = 150 };
    uint32_t samples = 0, refused[DAMAGES] = { 0 };
    for (uint64_t seed = 5000; samples < SAMPLES; seed++) {
        sample x = make_sample(seed);
        gantry_schedule *s = x.schedule ? copy_of(x.schedule) : NULL;
        for (int kind = 0; kind < DAMAGES && s; kind++) {
            bool more = true;
            for (uint32_t i = 0; more; i++) {
                if (!damage_counters(s, x.schedule, (damage)kind, i, &more))
                    continue;
                gantry_error err = { 0 };
                ck_assert_msg(gy_schedule_verify(s, x.graph, &err) == GANTRY_E_SCHEDULE,
                              "seed %llu: %s, number %u, was not refused", (unsigned long long)seed, damage_text[kind],
                              i);
                refused[kind]++;
            }
        }
        samples += s != NULL;
        gantry_schedule_free(s);
        free_sample(&x);
    }
    for (int kind = 0; kind < DAMAGES; kind++) {
        printf("%s: %u, all refused\n", damage_text[kind], refused[kind]);
        ck_assert_uint_gt(refused[kind], 10);
    }
}
END_TEST

/* The first of so many orders in which it goes wrong; 0: none. */
static uint32_t orders_until_wrong(const gantry_schedule *s, faults f, uint32_t most)
{
    for (uint32_t order = 1; order <= most; order++)
        if (interpret(s, s->in_flight + 2, f, order * 7))
            return order;
    return 0;
}

typedef struct sight {
    uint32_t done, seen;
} sight;

static void look(sight *to, const gantry_schedule *s, faults f)
{
    enum { ORDERS = 200 };
    to->done++;
    to->seen += orders_until_wrong(s, f, ORDERS) > 0;
}

/* Without each wait that bytes ask for. What only the graph asks for, by `after`, is left to the checker. */
static void look_at_waits(sight *to, gantry_schedule *s, const gantry_schedule *right)
{
    const gy_counters *all = &right->counters;
    bool more = true;
    for (uint32_t c = 0, i = 0; c < all->at.count; c++) {
        for (uint32_t k = 0; k < all->at.at[c].waits; k++, i++) {
            const gy_counter_wait *w = &all->wait.at[all->at.at[c].wait + k];
            uint32_t from = all->signal.at[all->at.at[c].signal + w->value - 1];
            if (share_bytes(right, from, w->op, w->distance) && damage_counters(s, right, DAMAGE_DROP_WHOLLY, i, &more))
                look(to, s, (faults){ 0 });
        }
    }
}

/* The interpreter sees what counters are for: without one of the waits, or without release or acquire, some order goes
 * wrong. */
START_TEST(test_seen)
{
    enum { SAMPLES = 60 };
    uint32_t samples = 0;
    sight waits = { 0 }, releases = { 0 }, acquires = { 0 };
    for (uint64_t seed = 9000; samples < SAMPLES; seed++) {
        sample x = make_sample(seed);
        if (x.schedule) {
            gantry_schedule *s = copy_of(x.schedule);
            look_at_waits(&waits, s, x.schedule);
            look(&releases, x.schedule, (faults){ .no_release = ALL_OPS });
            look(&acquires, x.schedule, (faults){ .no_acquire = ALL_OPS });
            gantry_schedule_free(s);
            samples++;
        }
        free_sample(&x);
    }
    printf("seen: %u of %u dropped waits, release in %u of %u schedules, acquire in %u of %u\n", waits.seen, waits.done,
           releases.seen, releases.done, acquires.seen, acquires.done);
    ck_assert(waits.done > 3 * SAMPLES && 50 * waits.seen >= 49 * waits.done);
    ck_assert(4 * releases.seen >= 3 * SAMPLES && 4 * acquires.seen >= 3 * SAMPLES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("counters");
    TCase *tc = tcase_create("counters");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_right);
    tcase_add_test(tc, test_damaged);
    tcase_add_test(tc, test_seen);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
