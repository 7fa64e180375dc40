/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Trials of replay "auto": which of the two ways of a back end (gy_lead) starts of a schedule go faster. It depends on
 * the sizes of ops, on what the computer's GPUs and its processor do by the way, and no prediction is near enough. So
 * where many starts follow each other, a batch of them is led by the host and one by the devices, then, where the two
 * are close, another each; those that are left go the way that was faster. Each of them is a start like any other, with
 * the same results, so nothing is carried out in vain.
 *
 * What a trial costs is bounded by parts of E, the time of all starts that have been made and are known to follow, if
 * the host leads them. Opening the devices' way is tried where it takes no more than E / 40; the devices are given up
 * when they have lost E / 40 on the host; if they win, what the host's batches took longer is below E / 25, the part of
 * the starts in them. Where a loop may end at any time, as many starts count as known as there have been.
 *
 * Who uses it makes starts in pieces: gy_trial_next says how long the next one may be, gy_trial_note takes what it
 * took, gy_trial_fail that it failed. Nothing here asks a clock but for how long opening took, which is told and
 * decides nothing.
 */
#ifndef GY_RUN_TRIAL_TRIAL_H
#define GY_RUN_TRIAL_TRIAL_H

#include "run/backend.h"
#include <gantry/run.h>

typedef enum gy_trial_stage {
    GY_TRIAL_OFF,    /* there is nothing to be tried, or it was: text says what came of it */
    GY_TRIAL_WAITS,  /* for more starts */
    GY_TRIAL_TIMES,  /* a batch of the way at hand is timed */
    GY_TRIAL_GROWS,  /* the devices make their first pieces, each twice as long as the one before */
    GY_TRIAL_DECIDES /* the way at hand is kept */
} gy_trial_stage;

typedef struct gy_lead_trial {
    const gy_backend *backend;
    void *state;
    gy_job *job;
    gy_counters counters; /* that the job is given */
    gy_trial_stage stage;
    gy_lead way, is; /* of the next piece; as the back end has it */
    bool opened, again;
    uint64_t spent;       /* starts before the trial */
    uint64_t batch;       /* starts of one that is timed */
    uint64_t piece, left; /* while it grows: starts of the next piece; left of it, or of the batch */
    int64_t ns;           /* of the batch so far */
    double us[GY_LEADS];  /* least of a start: while it waits, of a piece; then of a batch; 0: none */
    double may_lose_ns, lost_ns;
    double opened_ms;
    char text[540];
} gy_lead_trial;

/* Of a state of the back end that is open. Nothing is ever tried unless the schedule and the job allow it. */
void gy_trial_make(gy_lead_trial *t, const gy_backend *backend, void *state, gy_job *job);
void gy_trial_free(gy_lead_trial *t); /* once the state is closed */
/* How many of the `left` starts, at least 1, the next piece may have; the back end goes the way that it is for. While
 * no start is in flight. `known`: they follow unless one fails or is cancelled; else a condition may end them. */
uint64_t gy_trial_next(gy_lead_trial *t, uint64_t left, bool known);
/* So many starts have ended well, in so many nanoseconds together. */
void gy_trial_note(gy_lead_trial *t, uint64_t starts, int64_t ns);
/* A piece has failed, or was cancelled: it tells nothing. Devices that fail are given up. */
void gy_trial_fail(gy_lead_trial *t, const gantry_error *error);
/* Into `trial` and what follows it. The text is the trial's. */
void gy_trial_tell(const gy_lead_trial *t, gantry_run_info *to);

#endif
