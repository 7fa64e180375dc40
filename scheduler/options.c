/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/options.h"

#include "base/error.h"
#include "base/text.h"
#include "base/versioned.h"
#include "graph/flow/unroll.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"
#include <string.h>

#define GY_IN_FLIGHT_MOST 64 /* of a schedule file */

/* Words in the order of the numbers that they stand for; the last ones may have none. */
static const char *const objectives[] = { "makespan", "period", "max_load" };
static const char *const balances[] = { "static", "dynamic", "memory", "guided" };
static const char *const replays[] = { "stream", "graph", "auto" };
static const char *const spills[] = { "off", "copy", "auto" };

static gantry_status no_word(const char *what, const char *word, const char *const *known, size_t count,
                             gantry_error *err)
{
    const char *near = gy_nearest(word, known, count);
    if (near)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no %s \"%s\" (did you mean \"%s\"?)", what, word, near);
    gy_text names = { 0 };
    for (size_t i = 0; i < count; i++)
        gy_text_printf(&names, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", known[i]);
    gantry_status status =
        names.failed ? gy_fail_nomem(err)
                     : gy_fail(err, GANTRY_E_INVALID, NULL, "no %s \"%s\"; there are %s", what, word, names.at);
    gy_text_free(&names);
    return status;
}

/* *number: which of the words it is; NULL leaves the default that is there. */
static gantry_status read_word(uint32_t *number, const char *what, const char *word, const char *const *known,
                               size_t count, gantry_error *err)
{
    if (!word)
        return GANTRY_OK;
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(word, known[i])) {
            *number = i;
            return GANTRY_OK;
        }
    return no_word(what, word, known, count, err);
}

static gantry_status read_words(gy_options *to, const gantry_schedule_options *from, gantry_error *err)
{
    uint32_t objective = GY_OBJECTIVE_MAKESPAN, replay = 2, balance = GY_BALANCE_CHOSEN, spilling = GY_SPILL_REMAKE;
    GY_TRY(read_word(&objective, "objective", from->objective, objectives, 3, err));
    GY_TRY(read_word(&replay, "replay mode", from->replay, replays, 3, err));
    GY_TRY(read_word(&balance, "balance", from->balance, balances, 4, err));
    GY_TRY(read_word(&spilling, "way of spilling", from->spill, spills, 3, err));
    to->objective = (gy_objective)objective;
    to->replay = replays[replay];
    to->balance = (gy_balance)balance;
    to->spilling = (gy_spilling)spilling;
    return GANTRY_OK;
}

static gantry_status check_numbers(const gantry_schedule_options *o, gantry_error *err)
{
    if (o->effort < -1 || o->effort > GY_EFFORT_MOST)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "effort is %d; it must be 0 to 9", (int)o->effort);
    if (o->unroll < 0 || o->unroll > GY_UNROLL_MOST)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "unroll is %lld nodes; it must be 1 to %d, or 0: %d",
                       (long long)o->unroll, GY_UNROLL_MOST, GY_UNROLL_MOST);
    return GANTRY_OK;
}

static gantry_status check_in_flight(const gy_options *o, gantry_error *err)
{
    if (o->in_flight < 0 || o->in_flight > GY_IN_FLIGHT_MOST)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "in_flight is %d; it must be 1 to %d, or 0: chosen",
                       (int)o->in_flight, GY_IN_FLIGHT_MOST);
    if (o->in_flight > 1 && o->objective != GY_OBJECTIVE_PERIOD)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "in_flight is %d, but the objective is \"%s\"; only with \"period\" do starts overlap",
                       (int)o->in_flight, objectives[o->objective]);
    return GANTRY_OK;
}

gantry_status gy_options_read(gy_options *to, const gantry_schedule_options *from, gantry_error *err)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    GY_TRY(gy_struct_read(&o, sizeof o, from, "gantry_schedule_options", err));
    GY_TRY(gy_struct_reserved(o.reserved, "gantry_schedule_options", err));
    GY_TRY(check_numbers(&o, err));
    *to = (gy_options){ .max_memory = o.max_memory, .like = o.like, .optimal = o.optimal != 0, .effort = o.effort };
    to->in_flight = o.in_flight;
    to->unroll = o.unroll ? o.unroll : GY_UNROLL_MOST;
    to->seed = o.seed;
    if (o.effort < 0) /* a named policy is what was asked for, and is left as it is */
        to->effort = o.policy && !o.optimal ? 0 : GY_EFFORT_DEFAULT;
    GY_TRY(read_words(to, &o, err));
    GY_TRY(check_in_flight(to, err));
    return o.policy ? gy_policy_find(&to->policy, o.policy, err) : GANTRY_OK;
}
