/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/options.h"

#include "base/error.h"
#include "base/text.h"
#include "base/versioned.h"
#include "graph/flow/unroll.h"
#include "schedule/words.h"
#include "scheduler/policies/policy.h"
#include "scheduler/search/search.h"

#define GY_IN_FLIGHT_MOST 64 /* of a schedule file */

static gantry_status no_word(const gy_words *words, const char *word, gantry_error *err)
{
    const char *near = gy_nearest(word, words->word, words->count);
    if (near)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no %s \"%s\" (did you mean \"%s\"?)", words->what, word, near);
    gy_text names = { 0 };
    for (size_t i = 0; i < words->count; i++)
        gy_text_printf(&names, "%s%s", i == 0 ? "" : i + 1 == words->count ? " and " : ", ", words->word[i]);
    gantry_status status =
        names.failed ? gy_fail_nomem(err)
                     : gy_fail(err, GANTRY_E_INVALID, NULL, "no %s \"%s\"; there are %s", words->what, word, names.at);
    gy_text_free(&names);
    return status;
}

/* *number: which of the words it is, or `absent`. */
static gantry_status read_word(size_t *number, const gy_words *words, const char *word, size_t absent,
                               gantry_error *err)
{
    *number = word ? gy_word_find(words, word) : absent;
    return *number == SIZE_MAX ? no_word(words, word, err) : GANTRY_OK;
}

static gantry_status read_words(gy_options *to, const gantry_schedule_options *from, gantry_error *err)
{
    size_t objective, replay, balance, spilling;
    GY_TRY(read_word(&objective, &gy_objective_words, from->objective, GY_OBJECTIVE_MAKESPAN, err));
    GY_TRY(read_word(&replay, &gy_replay_words, from->replay, GY_REPLAY_AUTO, err));
    GY_TRY(read_word(&balance, &gy_balance_words, from->balance, GY_BALANCE_CHOSEN, err));
    GY_TRY(read_word(&spilling, &gy_spill_words, from->spill, GY_SPILL_REMAKE, err));
    to->objective = (gy_objective)objective;
    to->replay = (gy_replay)replay;
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
                       (int)o->in_flight, gy_word(&gy_objective_words, o->objective));
    return GANTRY_OK;
}

/* Branch and bound proves makespans; of other objectives there would be a plan, and no proof. */
static gantry_status check_optimal(const gy_options *o, gantry_error *err)
{
    if (!o->optimal || o->objective == GY_OBJECTIVE_MAKESPAN)
        return GANTRY_OK;
    return gy_fail(
        err, GANTRY_E_INVALID, NULL,
        "optimal is asked for, but the objective is \"%s\"; only of \"makespan\" an optimum is proved: leave "
        "one of the two out",
        gy_word(&gy_objective_words, o->objective));
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
    GY_TRY(check_optimal(to, err));
    return o.policy ? gy_policy_find(&to->policy, o.policy, err) : GANTRY_OK;
}
