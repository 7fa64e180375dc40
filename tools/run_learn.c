/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gantry run, the first time that a graph's kernels meet a computer: what they take is measured, for the plans to come.
 * That is done in a run of its own, after the other was told of, so that no time that is shown has the cost of
 * measuring in it, no state goes on further than was asked for, and nothing is told of what fails.
 */
#include "run.h"
#include <string.h>

#define SHORT_US 0.25e6 /* starts that take no longer are made four times */
#define LONG_US  2e6    /* longer ones are not made only to be measured */

enum { STARTS = 4, FEWEST = 2 }; /* the first is a warm-up */

static bool ran_on_gpus(const session *s)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    return !gantry_run_get_info(s->run, &info, NULL) && strcmp(info.backend, "cuda") == 0;
}

/* In place of the session's run, whose memory on the GPUs is needed. */
static void measure(session *s)
{
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    int starts = s->measured_us <= SHORT_US ? STARTS : FEWEST;
    uint64_t ticket;
    gantry_run_free(s->run);
    s->run = NULL;
    ro.backend = "cuda";
    ro.allow_code = s->o->allow_code;
    ro.record_trace = 1;
    if (gantry_run_new(&s->run, s->schedule, &ro, NULL) || bind_inputs(s, s->run))
        return;
    for (int i = 0; i < starts; i++)
        if (gantry_run_start(s->run, &ticket, NULL) || gantry_run_wait(s->run, ticket, NULL) ||
            gantry_run_sample(s->run, NULL))
            return;
    (void)!gantry_run_keep(s->run, s->known.here, NULL);
}

void learn(session *s)
{
    bool sampled = records_times(s) && s->starts >= FEWEST;
    if (!s->known.here || s->o->schedule || !ran_on_gpus(s) || !gantry_schedule_unmeasured(s->schedule, s->known.here))
        return;
    fflush(stdout);
    if (sampled)
        (void)!gantry_run_keep(s->run, s->known.here, NULL);
    else if (s->measured_us <= LONG_US)
        measure(s);
}
