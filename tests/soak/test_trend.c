/* SPDX-License-Identifier: Apache-2.0 */
/* Growth is told from what was made once, by samples whose course is written down here. */
#include "trend.h"

#include "support/run_suite.h"
#include <check.h>

enum { SAMPLES = 100, HEAP = 1000000, GROWTH = 270 * 1024, LITTLE = 60 * 1024 };

/* So much more than at first, `part` of the way. */
typedef uint64_t (*course)(double part);

static uint64_t level(double part)
{
    (void)part;
    return 0;
}

static uint64_t in_one_step(double part)
{
    return part < 0.55 ? 0 : GROWTH;
}

static uint64_t in_two_steps(double part)
{
    return part < 0.35 ? 0 : part < 0.65 ? GROWTH / 2 : GROWTH;
}

static uint64_t steadily(double part)
{
    return (uint64_t)(GROWTH * part);
}

/* Less than the slack of the heap, 64 KiB, from the second tenth of the way to the eighth; more than that below. */
static uint64_t a_little(double part)
{
    return (uint64_t)(LITTLE / 0.6 * part);
}

static uint64_t a_little_more(double part)
{
    return (uint64_t)(70 * 1024 / 0.6 * part);
}

static uint64_t a_step_and_steadily(double part)
{
    return in_one_step(part) + a_little_more(part);
}

static uint64_t one_more(double part)
{
    return part < 0.55 ? 0 : 1;
}

static uint64_t more_and_more(double part)
{
    return (uint64_t)(3 * part);
}

/* Every fourth sample is taken while something is in use, once in a while much of it. */
static uint64_t now_and_then(double part)
{
    int i = (int)(part * SAMPLES);
    return i % 4 == 0 ? (uint64_t)(i * 100000) : 0;
}

static trend walk(trend_kind what, course more, int samples)
{
    trend t = { 0 };
    for (int i = 0; i < samples; i++) {
        double part = (i + 0.5) / samples;
        sample now = { { [TREND_HEAP] = HEAP, [TREND_DESCRIPTORS] = 8, [TREND_THREADS] = 3 } };
        now.of[what] += more(part) + (what >= TREND_DRIVER_THREADS);
        trend_add(&t, part, &now);
    }
    return t;
}

static void holds(trend_kind what, course more, bool host, bool driver)
{
    trend t = walk(what, more, SAMPLES);
    ck_assert_int_eq(trend_is_flat(&t, false), host);
    ck_assert_int_eq(trend_is_flat(&t, true), driver);
}

START_TEST(what_goes_on_is_growth)
{
    holds(TREND_HEAP, level, true, true);
    holds(TREND_HEAP, now_and_then, true, true);
    holds(TREND_HEAP, steadily, false, false);
    holds(TREND_HEAP, a_little, true, true);
    holds(TREND_HEAP, a_little_more, false, false);
    holds(TREND_GPU, steadily, false, false);
    holds(TREND_DESCRIPTORS, more_and_more, false, false);
    holds(TREND_THREADS, more_and_more, false, false);
    holds(TREND_DRIVER_THREADS, more_and_more, false, false);
}
END_TEST

START_TEST(one_step_of_the_driver_is_none)
{
    holds(TREND_HEAP, in_one_step, false, true);
    holds(TREND_HEAP, in_two_steps, false, false);
    holds(TREND_HEAP, a_step_and_steadily, false, false);
    holds(TREND_GPU + 1, in_one_step, false, true);
    holds(TREND_DRIVER_THREADS, one_more, false, true);
}
END_TEST

START_TEST(what_is_ours_has_no_step)
{
    holds(TREND_DESCRIPTORS, one_more, false, false);
    holds(TREND_THREADS, one_more, false, false);
}
END_TEST

/* With a window that nobody looked in, a step may be many. */
START_TEST(few_samples_excuse_nothing)
{
    trend t = walk(TREND_HEAP, in_one_step, 6);
    ck_assert(!trend_is_flat(&t, true));
    t = walk(TREND_HEAP, level, 6);
    ck_assert(trend_is_flat(&t, true));
    t = walk(TREND_HEAP, level, 1);
    ck_assert(!trend_is_flat(&t, true)); /* nothing was seen late */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("soak: trend");
    TCase *c = tcase_create("trend");
    tcase_add_test(c, what_goes_on_is_growth);
    tcase_add_test(c, one_step_of_the_driver_is_none);
    tcase_add_test(c, what_is_ours_has_no_step);
    tcase_add_test(c, few_samples_excuse_nothing);
    suite_add_tcase(s, c);
    return run_suite(s);
}
