/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/options.h"

#include "base/error.h"
#include "base/text.h"
#include "base/versioned.h"
#include "graph/derive/phase.h"
#include "scheduler/search/search.h"
#include <string.h>

#define GY_IN_FLIGHT_MOST 64 /* of a schedule file */

static gantry_status check_word(const char *what, const char *word, const char *const *known, size_t count,
                                gantry_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, known[i]))
            return GANTRY_OK;
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

static gantry_status check_words(const gantry_schedule_options *o, gantry_error *err)
{
    static const char *const objectives[] = { "makespan", "period", "max_load" };
    static const char *const balances[] = { "static", "dynamic", "memory", "guided" };
    static const char *const replays[] = { "stream", "graph", "auto" };
    static const char *const spills[] = { "auto", "copy", "off" };
    gantry_status status = check_word("objective", o->objective, objectives, 3, err);
    if (!status)
        status = check_word("replay mode", o->replay, replays, 3, err);
    if (!status && o->balance)
        status = check_word("balance", o->balance, balances, 4, err);
    if (!status)
        status = check_word("way of spilling", o->spill, spills, 3, err);
    if (!status && (o->in_flight < 0 || o->in_flight > GY_IN_FLIGHT_MOST))
        status = gy_fail(err, GANTRY_E_INVALID, NULL, "in_flight is %d; it must be 1 to %d, or 0: chosen",
                         (int)o->in_flight, GY_IN_FLIGHT_MOST);
    if (!status && o->in_flight > 1 && strcmp(o->objective, "period") != 0)
        status = gy_fail(err, GANTRY_E_INVALID, NULL,
                         "in_flight is %d, but the objective is \"%s\"; only with \"period\" do starts overlap",
                         (int)o->in_flight, o->objective);
    return status;
}

gantry_status gy_options_read(gantry_schedule_options *to, const gantry_schedule_options *from, gantry_error *err)
{
    *to = (gantry_schedule_options)GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_status status = gy_struct_read(to, sizeof *to, from, "gantry_schedule_options", err);
    status = status ? status : gy_struct_reserved(to->reserved, "gantry_schedule_options", err);
    if (status)
        return status;
    to->objective = to->objective ? to->objective : "makespan";
    to->replay = to->replay ? to->replay : "auto";
    to->spill = to->spill ? to->spill : "auto";
    if (to->effort < -1 || to->effort > 9)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "effort is %d; it must be 0 to 9", (int)to->effort);
    if (to->effort < 0) /* a named policy is what was asked for, and is left as it is */
        to->effort = to->policy && !to->optimal ? 0 : GY_EFFORT_DEFAULT;
    if (to->unroll < 0 || to->unroll > GY_UNROLL_MOST)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "unroll is %lld nodes; it must be 1 to %d, or 0: %d",
                       (long long)to->unroll, GY_UNROLL_MOST, GY_UNROLL_MOST);
    return check_words(to, err);
}

gy_spilling gy_options_spill(const gantry_schedule_options *o)
{
    if (!o->spill || !strcmp(o->spill, "auto"))
        return GY_SPILL_REMAKE;
    return !strcmp(o->spill, "off") ? GY_SPILL_OFF : GY_SPILL_COPY;
}
