/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gantry run, the first time that a graph's kernels meet a computer: what they take is measured, for the plans to come.
 * That is done in a run of its own, after the other was told of, so that no time that is shown has the cost of
 * measuring in it, no state goes on further than was asked for, and nothing is told of what fails.
 */
#include "runs/run.h"

#define SHORT_US 0.25e6 /* starts that take no longer are made a few times before times count */
#define LONG_US  2e6    /* longer ones are not made only to be measured */

enum { WARM_UP = 4, SAMPLES = 3, FEWEST = 2 }; /* the first sample is a warm-up, too */

/* In place of the session's run, whose memory on the GPUs is needed. `warm_up` starts are not sampled: replay that is
 * chosen by itself (auto) then is what it goes on with. */
static bool sample(session *s, bool apart, int warm_up)
{
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket;
    gantry_run_free(s->run);
    s->run = NULL;
    ro.backend = "cuda";
    ro.allow_code = s->o->allow_code;
    ro.record_trace = 1;
    ro.threads = (int32_t)s->o->threads;
    ro.apart = apart;
    if (gantry_run_new(&s->run, s->schedule, &ro, NULL) || bind_inputs(s, s->run))
        return false;
    for (int i = 0; i < warm_up + SAMPLES; i++)
        if (gantry_run_start(s->run, &ticket, NULL) || gantry_run_wait(s->run, ticket, NULL) ||
            (i >= warm_up && gantry_run_sample(s->run, NULL)))
            return false;
    return gantry_run_keep(s->run, s->known.here, NULL) == GANTRY_OK;
}

/* Measures what ops take alone, then how much of a GPU they leave to each other. */
static void measure(session *s, gantry_unmeasured what)
{
    int warm_up = s->measured_us <= SHORT_US ? WARM_UP : 0;
    if (what == GANTRY_UNMEASURED_SHARES || sample(s, true, warm_up))
        (void)!sample(s, false, warm_up);
}

void learn(session *s)
{
    gantry_unmeasured what = GANTRY_UNMEASURED_NOTHING;
    if (!s->known.here || s->o->schedule || reads_once(s) ||
        gantry_run_unmeasured(s->run, s->known.here, &what, NULL) || !what)
        return;
    fflush(stdout);
    if (s->measured_us <= LONG_US)
        measure(s, what);
    else if (records_times(s) && s->starts >= FEWEST)
        (void)!gantry_run_keep(s->run, s->known.here, NULL);
}
