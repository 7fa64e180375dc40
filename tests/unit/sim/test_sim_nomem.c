/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a simulation fails once: E_NOMEM, nothing written, nothing leaked, and the next try succeeds. */
#include <check.h>

#include "sim/sim.h"
#include "support/faults.h"
#include "support/hand.h"
#include "support/run_suite.h"

static const char machine[] = "{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000000}, "
                              "{\"id\": \"a\", \"capacity\": 1000000}], "
                              "\"devices\": [{\"id\": \"A\", \"memory\": \"a\"}], \"resources\": {\"bus\": 10}, "
                              "\"routes\": [{\"from\": \"host\", \"to\": \"a\", \"latency_us\": 1, \"bandwidth_gbs\": "
                              "10, \"via\": [\"bus\"], \"both\": true}]}";

static gantry_schedule *busy(void)
{
    gantry_schedule *s = hand_new(machine);
    for (int i = 0; i < 40; i++) {
        uint32_t up = hand_move(s, hand_lane(s, 0, GY_LANE_COPY), 0, 1, 1000 + i);
        uint32_t work = hand_launch(s, "work", hand_lane(s, 0, GY_LANE_COMPUTE), 1);
        hand_wait(s, up, work);
    }
    return s;
}

static void fail_each(gantry_schedule *s)
{
    int failed = 0;
    for (bool happened = true; happened; failed++) {
        gantry_error err = { 0 };
        s->makespan = -1;
        faults_after(failed);
        gantry_status status = gy_sim_run(s, &err);
        happened = faults_off();
        ck_assert_int_eq(status, happened ? GANTRY_E_NOMEM : GANTRY_OK);
        ck_assert(!happened || (err.status == status && s->makespan == -1));
    }
    ck_assert_int_gt(failed, 20);
    ck_assert_int_gt(s->makespan, 0);
}

START_TEST(running)
{
    gantry_schedule *s = busy();
    fail_each(s);
    gantry_schedule_free(s);
}
END_TEST

/* Telling what is wrong needs memory too. */
START_TEST(telling)
{
    gantry_schedule *s = busy();
    hand_sync(s, 3, 1, 0, GY_CARRIER_EVENT, GY_WHY_DATA);
    hand_sync(s, 1, 3, 0, GY_CARRIER_EVENT, GY_WHY_DATA);
    bool happened = true;
    for (int n = 0; happened; n++) {
        faults_after(n);
        gantry_status status = gy_sim_run(s, NULL);
        happened = faults_off();
        ck_assert_int_eq(status, happened ? GANTRY_E_NOMEM : GANTRY_E_SCHEDULE);
    }
    gantry_schedule_free(s);
}
END_TEST

/* Starts that wait for each other, and for the host. */
START_TEST(starting)
{
    gantry_schedule *s = busy();
    gy_sim_start out[3];
    ((gantry_machine *)s->machine)->start = GY_TICKS_PER_US;
    bool happened = true;
    int failed = 0;
    for (; happened; failed++) {
        faults_after(failed);
        gantry_status status = gy_sim_run_starts(s, 3, out, NULL);
        happened = faults_off();
        ck_assert_int_eq(status, happened ? GANTRY_E_NOMEM : GANTRY_OK);
    }
    ck_assert_int_gt(failed, 20);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim without memory");
    TCase *t = tcase_create("nomem");
    tcase_add_test(t, running);
    tcase_add_test(t, telling);
    tcase_add_test(t, starting);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
