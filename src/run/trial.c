/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial.h"

#include "base/clock.h"
#include "base/error.h"
#include "schedule/check/verify.h"
#include "schedule/counters/counters.h"
#include <stdio.h>

enum {
    MANY = 200,        /* starts that a trial is made for, at least */
    BATCHES = 50,      /* in what is known to follow: so two are E / 25 */
    LEAST_BATCH = 4,   /* of which the mean is no chance */
    MOST_BATCH = 256,  /* more tell nothing new */
    OPENING_PART = 40, /* of E */
    LOSS_PART = 40
};
#define CLEAR 1.3  /* a way that takes so many times as long is no matter of noise */
#define GAIN  0.97 /* of the host's time: the devices must be below */

void gy_trial_make(gy_lead_trial *t, const gy_backend *backend, void *state, gy_job *job)
{
    bool alone = job->turns == 1 && !job->network && job->deadline_ns == 0 && !job->record && !job->apart;
    *t = (gy_lead_trial){ .backend = backend, .state = state, .job = job };
    if (!backend->turn_to || job->schedule->replay != GY_REPLAY_AUTO || job->schedule->phases.count || !alone)
        return;
    t->stage = GY_TRIAL_WAITS;
    snprintf(t->text, sizeof t->text, "none yet: too few starts in a row");
}

void gy_trial_free(gy_lead_trial *t)
{
    gy_vec_free(&t->counters.at);
    gy_vec_free(&t->counters.signal);
    gy_vec_free(&t->counters.wait);
}

/* ---- the devices' way ---- */

/* Counters as its maker would have given the schedule, which others may be using: a copy has them, and is checked. */
static gantry_status find_counters(gy_lead_trial *t, gantry_error *err)
{
    gantry_schedule with = *t->job->schedule;
    with.counters = (gy_counters){ 0 };
    gantry_status status = gy_counters_make(&with, err);
    status = status ? status : gy_schedule_verify(&with, t->job->graph, err);
    t->counters = with.counters;
    t->job->counters = &t->counters;
    return status;
}

static gantry_status turn_to(gy_lead_trial *t, bool for_good, gantry_error *err)
{
    bool opens = t->way == GY_LEAD_DEVICE && !t->opened;
    int64_t began = gy_now_ns();
    GY_TRY(opens ? find_counters(t, err) : GANTRY_OK);
    GY_TRY(t->backend->turn_to(t->state, t->way, for_good, err));
    if (opens) {
        t->opened = true;
        t->opened_ms = (double)(gy_now_ns() - began) / 1e6;
    }
    t->is = t->way;
    return GANTRY_OK;
}

static void tell_why_not(gy_lead_trial *t, const gantry_error *error)
{
    snprintf(t->text, sizeof t->text, "not by the devices: %s", error->text);
}

static void keep(gy_lead_trial *t)
{
    gantry_error error = { 0 };
    t->stage = GY_TRIAL_OFF;
    if (turn_to(t, true, &error))
        tell_why_not(t, &error);
    if (t->is == GY_LEAD_DEVICE)
        return;
    t->job->counters = NULL;
    gy_trial_free(t);
}

static void keep_host(gy_lead_trial *t, const gantry_error *why)
{
    t->way = GY_LEAD_HOST;
    t->stage = GY_TRIAL_DECIDES;
    tell_why_not(t, why);
}

/* ---- stages ---- */

/* Starts that count as known to follow. */
static uint64_t expected(const gy_lead_trial *t, uint64_t left, bool known)
{
    return known || left < t->spent ? left : t->spent;
}

static void begin_batch(gy_lead_trial *t, gy_lead way)
{
    t->stage = GY_TRIAL_TIMES;
    t->way = way;
    t->left = t->batch;
    t->ns = 0;
}

static void consider(gy_lead_trial *t, uint64_t left, bool known)
{
    uint64_t more = expected(t, left, known);
    double all_ns = (double)(t->spent + more) * t->us[GY_LEAD_HOST] * 1e3;
    if (t->spent < GY_SETTLED || more < MANY || (double)t->backend->turn_ns(t->state) > all_ns / OPENING_PART)
        return;
    uint64_t batch = more / BATCHES;
    t->batch = batch < LEAST_BATCH ? LEAST_BATCH : batch > MOST_BATCH ? MOST_BATCH : batch;
    t->may_lose_ns = all_ns / LOSS_PART;
    t->us[GY_LEAD_HOST] = 0;
    snprintf(t->text, sizeof t->text, "under way");
    begin_batch(t, GY_LEAD_HOST);
}

static void decide(gy_lead_trial *t)
{
    const double *us = t->us;
    t->way = us[GY_LEAD_DEVICE] < GAIN * us[GY_LEAD_HOST] ? GY_LEAD_DEVICE : GY_LEAD_HOST;
    t->stage = GY_TRIAL_DECIDES;
    snprintf(t->text, sizeof t->text, "%.3g us a start led by the host, %.3g by the devices, opened in %.3g ms",
             us[GY_LEAD_HOST], us[GY_LEAD_DEVICE], t->opened_ms);
}

static bool is_clear(const gy_lead_trial *t)
{
    return t->us[GY_LEAD_HOST] > CLEAR * t->us[GY_LEAD_DEVICE] || t->us[GY_LEAD_DEVICE] > CLEAR * t->us[GY_LEAD_HOST];
}

static void end_batch(gy_lead_trial *t)
{
    double us = (double)t->ns / 1e3 / (double)t->batch;
    t->us[t->way] = t->us[t->way] > 0 && t->us[t->way] < us ? t->us[t->way] : us;
    if (t->way == GY_LEAD_HOST && !t->opened) {
        t->stage = GY_TRIAL_GROWS;
        t->way = GY_LEAD_DEVICE;
        t->piece = t->left = 1;
    } else if (t->way == GY_LEAD_HOST) {
        begin_batch(t, GY_LEAD_DEVICE);
    } else if (t->again || is_clear(t)) {
        decide(t);
    } else {
        t->again = true;
        begin_batch(t, GY_LEAD_HOST);
    }
}

static void end_piece(gy_lead_trial *t)
{
    t->piece *= 2;
    t->left = t->piece;
    if (t->piece > t->batch)
        begin_batch(t, GY_LEAD_DEVICE);
}

/* ---- pieces ---- */

uint64_t gy_trial_next(gy_lead_trial *t, uint64_t left, bool known)
{
    gantry_error error = { 0 };
    if (t->stage == GY_TRIAL_WAITS)
        consider(t, left, known);
    if (t->stage != GY_TRIAL_OFF && t->way != t->is && turn_to(t, false, &error))
        keep_host(t, &error);
    if (t->stage == GY_TRIAL_DECIDES)
        keep(t);
    bool timed = t->stage == GY_TRIAL_TIMES || t->stage == GY_TRIAL_GROWS;
    return timed && t->left < left ? t->left : left;
}

void gy_trial_note(gy_lead_trial *t, uint64_t starts, int64_t ns)
{
    double us = (double)ns / 1e3 / (double)starts;
    if (t->stage == GY_TRIAL_WAITS) {
        t->spent += starts;
        t->us[t->way] = t->us[t->way] > 0 && t->us[t->way] < us ? t->us[t->way] : us;
    }
    if (t->stage != GY_TRIAL_TIMES && t->stage != GY_TRIAL_GROWS)
        return;
    bool by_devices = t->way == GY_LEAD_DEVICE;
    t->lost_ns += by_devices ? (double)ns - (double)starts * t->us[GY_LEAD_HOST] * 1e3 : 0;
    t->ns += ns;
    t->left -= starts < t->left ? starts : t->left;
    if (by_devices && t->lost_ns > t->may_lose_ns) {
        t->us[GY_LEAD_DEVICE] = t->us[GY_LEAD_DEVICE] > 0 && t->us[GY_LEAD_DEVICE] < us ? t->us[GY_LEAD_DEVICE] : us;
        decide(t);
    } else if (t->left == 0 && t->stage == GY_TRIAL_TIMES) {
        end_batch(t);
    } else if (t->left == 0) {
        end_piece(t);
    }
}

void gy_trial_fail(gy_lead_trial *t, const gantry_error *error)
{
    if (t->stage == GY_TRIAL_TIMES)
        begin_batch(t, t->way);
    if ((t->stage == GY_TRIAL_TIMES || t->stage == GY_TRIAL_GROWS) && t->way == GY_LEAD_DEVICE &&
        error->status != GANTRY_E_CANCELED)
        keep_host(t, error);
}

void gy_trial_tell(const gy_lead_trial *t, gantry_run_info *to)
{
    bool timed = t->stage == GY_TRIAL_OFF || t->stage == GY_TRIAL_DECIDES;
    to->trial = *t->text ? t->text : NULL;
    to->trial_host_us = timed ? t->us[GY_LEAD_HOST] : 0;
    to->trial_device_us = timed ? t->us[GY_LEAD_DEVICE] : 0;
}
