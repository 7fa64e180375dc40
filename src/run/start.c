/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: starting and waiting. The first failure is returned to the caller once; then the run can be started anew. */
#include "run/phases.h"

#include "base/clock.h"
#include "base/error.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static gantry_status tell(gantry_run *run, gantry_error *err)
{
    run->failure.told = true;
    if (err)
        *err = run->failure.error;
    return run->failure.error.status;
}

#define LOOK_NS INT64_C(100000000)

/* States may be half updated: they begin again from what they are bound to. */
static void forget_states(gantry_run *run)
{
    run->keeper.forgot = true;
    for (uint32_t b = 0; b < run->graph->buffers.count; b++) {
        if (run->graph->buffers.at[b].cls == GANTRY_STATE) {
            run->binding[b].placed = false;
            run->unplaced = true;
        }
    }
}

/* Everything in flight failed with it. */
static void note_failure(gantry_run *run, const gantry_error *error)
{
    run->failure = (gy_failure){ .first = run->finished + 1, .last = run->started, .told = false, .error = *error };
    run->finished = run->started;
    forget_states(run);
}

/* The cancellation is over once it is reported. `where`: how far the back end came with the start, which may be
 * err->text; "": it was not begun. */
static gantry_status fail_canceled(gantry_run *run, uint64_t start, const char *where, gantry_error *err)
{
    char part[300] = "";
    atomic_store(&run->canceled, false);
    if (*where)
        snprintf(part, sizeof part, ", start %" PRIu64 " ended %.250s", start, where);
    return gy_fail(err, GANTRY_E_CANCELED, NULL, "the run was cancelled: %" PRIu64 " start%s complete%s; %s",
                   run->completed, run->completed == 1 ? " is" : "s are", part,
                   run->job.network ? "other processes may wait for this one; end all with gantry_network_abort"
                                    : "it can be started again");
}

void gy_run_look(void *of)
{
    gantry_run *run = of;
    int64_t now = gy_now_ns();
    if (!run->progress || now - run->looked_ns < LOOK_NS)
        return;
    run->looked_ns = now;
    gantry_run_progress p = {
        .struct_size = sizeof p, .started = run->started, .completed = run->completed, .watched = (double)NAN
    };
    char at[GY_BEAT] = "";
    if (run->job.network)
        gy_network_at(run->job.network, at, sizeof at);
    p.at = *at ? at : NULL;
    if (run->schedule->phases.count)
        gy_phases_progress(run->state, &p);
    if (run->progress(run->user, &p))
        gantry_run_cancel(run);
}

/* The oldest start in flight. False: it failed, and the failure is noted. */
static bool finish_next(gantry_run *run)
{
    gantry_error error = { 0 };
    int64_t elapsed = 0;
    gy_run_feeds_land(run);
    gantry_status status = run->backend->finish(run->state, run->finished + 1, &elapsed, &error);
    if (status == GANTRY_E_CANCELED) {
        (void)fail_canceled(run, run->finished + 1, error.text, &error);
        if (run->edge)
            gy_run_edge_outputs(run, gy_job_turn(&run->job, run->finished + 1));
    }
    if (status) {
        note_failure(run, &error);
        return false;
    }
    run->finished++;
    run->completed++;
    gy_run_feeds_return(run);
    gy_run_look(run);
    run->last_us = (double)elapsed / 1e3;
    if (run->edge)
        gy_run_edge_outputs(run, gy_job_turn(&run->job, run->finished));
    return true;
}

static bool finish_until(gantry_run *run, uint64_t start)
{
    while (run->finished < start)
        if (!finish_next(run))
            return false;
    return true;
}

gantry_status gy_run_drain(gantry_run *run, gantry_error *err)
{
    return finish_until(run, run->started) ? GANTRY_OK : tell(run, err);
}

/* Contents of states and constants: while no start is in flight. */
static gantry_status prepare_states(gantry_run *run, gantry_error *err)
{
    gantry_status status = run->unplaced ? gy_run_put_states(run, err) : GANTRY_OK;
    run->unplaced = status != GANTRY_OK;
    for (; run->retired.count > 0; run->retired.count--)
        gy_free(*gy_vec_last(&run->retired));
    return status;
}

/* Starts in flight that write to arrays that the next one reads or writes, or read what it writes, end first. */
static bool keep_apart(gantry_run *run, uint32_t turn)
{
    uint64_t last = run->finished;
    for (uint64_t start = run->finished + 1; run->results && start <= run->started; start++)
        if (gy_run_turns_meet(run, turn, gy_job_turn(&run->job, start)))
            last = start;
    return finish_until(run, last);
}

/* Pointers of the turn that comes next, which no start in flight has; most starts have nothing to do here. */
static gantry_status prepare_turn(gantry_run *run, uint32_t turn, gantry_error *err)
{
    bool old = run->turn_version[turn] != run->version;
    if (old)
        gy_run_take_bindings(run, turn);
    if (!keep_apart(run, turn))
        return tell(run, err);
    gantry_status status = old || run->repack ? gy_run_refresh_inputs(run, turn, err) : GANTRY_OK;
    if (status == GANTRY_OK && old)
        status = gy_run_refresh_outputs(run, turn, err);
    if (status == GANTRY_OK)
        run->turn_version[turn] = run->version;
    return status ? status : gy_run_feeds_bring(run, turn, err);
}

static gantry_status prepare(gantry_run *run, gantry_error *err)
{
    uint32_t turn = gy_job_turn(&run->job, run->started + 1);
    gantry_status status = run->finished == run->started ? prepare_states(run, err) : GANTRY_OK;
    if (status == GANTRY_OK)
        status = prepare_turn(run, turn, err);
    if (status == GANTRY_OK && run->changed && run->finished == run->started) {
        status = run->backend->rebind(run->state, err);
        run->changed = status != GANTRY_OK;
    }
    return status;
}

/* Starts in flight tell of a cancellation themselves, if they have left something out. */
static gantry_status check_canceled(gantry_run *run, gantry_error *err)
{
    if (!gy_job_canceled(&run->job))
        return GANTRY_OK;
    GY_TRY(gy_run_drain(run, err));
    return gy_job_canceled(&run->job) ? fail_canceled(run, run->started + 1, "", err) : GANTRY_OK;
}

static gantry_status make_ready(gantry_run *run, gantry_error *err)
{
    if (run->failure.last > 0 && !run->failure.told)
        return tell(run, err);
    if (run->finished == run->started && !run->backend->idle(run->state))
        return tell(run, err); /* it timed out, and what hung hangs still */
    GY_TRY(gy_keeper_look(run, err));
    uint64_t limit = run->job.turns, finished = run->started < limit ? 0 : run->started - limit + 1;
    if (!finish_until(run, run->unplaced || gy_run_feeds_put(run) ? run->started : finished))
        return tell(run, err);
    if (run->feeds.count) {
        gy_run_feeds_return(run); /* also of starts that failed */
        gy_run_feeds_wait(run);
        GY_TRY(check_canceled(run, err));
        GY_TRY(gy_run_feeds_place(run, err));
    }
    return prepare(run, err);
}

/* A start that the back end could not begin may have changed states all the same. */
static gantry_status fail_begin(gantry_run *run, gantry_status status, gantry_error *err)
{
    forget_states(run);
    if (status != GANTRY_E_CANCELED)
        return status;
    return fail_canceled(run, run->started + 1, err ? err->text : "early", err);
}

static gantry_status count_start(gantry_run *run, gantry_status begun, uint64_t *ticket)
{
    if (begun)
        return begun;
    run->started++;
    gy_run_feeds_take(run);
    gy_run_feeds_land(run);
    if (ticket)
        *ticket = run->started;
    return GANTRY_OK;
}

static gantry_status start(gantry_run *run, uint64_t *ticket, gantry_error *err)
{
    GY_TRY(run->backend->executes ? make_ready(run, err) : GANTRY_OK);
    GY_TRY(check_canceled(run, err));
    gantry_status status = run->backend->begin(run->state, run->started + 1, err);
    return count_start(run, status ? fail_begin(run, status, err) : status, ticket);
}

gantry_status gantry_run_start(gantry_run *run, uint64_t *ticket, gantry_error *err)
{
    GY_USE_RUN(run, start(run, ticket, err), err);
}

static gantry_status start_on(gantry_run *run, void *stream, uint64_t *ticket, gantry_error *err)
{
    if (!run->backend->begin_on) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "back end \"%s\" has no streams%s; use gantry_run_start and gantry_run_wait", run->backend->name,
                       run->schedule->phases.count ? " where a graph runs in phases" : "");
    }
    GY_TRY(make_ready(run, err));
    GY_TRY(check_canceled(run, err));
    gantry_status status = run->backend->begin_on(run->state, run->started + 1, stream, err);
    return count_start(run, status ? fail_begin(run, status, err) : status, ticket);
}

gantry_status gantry_run_start_on(gantry_run *run, void *stream, uint64_t *ticket, gantry_error *err)
{
    GY_USE_RUN(run, start_on(run, stream, ticket, err), err);
}

static gantry_status wait_for(gantry_run *run, uint64_t ticket, gantry_error *err)
{
    if (ticket == 0 || ticket > run->started) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "no start has the ticket %" PRIu64 "; the last one is %" PRIu64,
                       ticket, run->started);
    }
    finish_until(run, ticket);
    run->waited = ticket;
    bool failed = ticket >= run->failure.first && ticket <= run->failure.last;
    return failed ? tell(run, err) : GANTRY_OK;
}

gantry_status gantry_run_wait(gantry_run *run, uint64_t ticket, gantry_error *err)
{
    GY_USE_RUN(run, wait_for(run, ticket, err), err);
}

/* ---- series ---- */

/* Nobody asks for what a start in the middle leaves, or how long it may take; all read the same, and none writes into
 * arrays of the caller, which those that are in flight together would have to take in turn. */
static bool can_be_series(const gantry_run *run)
{
    return run->backend->executes && run->backend->series && (run->job.turns == 1 || !run->results) &&
           run->job.deadline_ns == 0 && run->feeds.count == 0;
}

/* Starts in flight end first, as a series may take all turns. */
static gantry_status make_turns_ready(gantry_run *run, gantry_error *err)
{
    GY_TRY(run->job.turns > 1 ? gy_run_drain(run, err) : GANTRY_OK);
    GY_TRY(make_ready(run, err));
    for (uint32_t t = 0; t < run->job.turns; t++)
        if (t != gy_job_turn(&run->job, run->started + 1))
            GY_TRY(prepare_turn(run, t, err));
    return GANTRY_OK;
}

/* As many of the starts as the back end carries out together: *done; 0: one was begun. A start that fails is one of its
 * own. */
static gantry_status start_series(gantry_run *run, uint64_t starts, uint64_t *done, gantry_error *err)
{
    uint64_t most = gy_series_most(run->schedule);
    if (run->keeper.folder && run->keeper.every < most)
        most = run->keeper.every;
    gy_series series = { .starts = starts < most ? starts : most, .until = GY_NONE };
    gantry_error error = { 0 };
    int64_t elapsed = 0;
    *done = 0;
    GY_TRY(make_turns_ready(run, err));
    if (!can_be_series(run)) /* arrays of the caller were seen */
        return start(run, NULL, err);
    GY_TRY(check_canceled(run, err));
    const uint64_t next = gy_trial_next(&run->trial, starts, true);
    const int64_t began = gy_now_ns();
    series.starts = next < series.starts ? next : series.starts;
    gantry_status status = run->backend->series(run->state, run->started + 1, &series, done, &elapsed, &error);
    if (status == GANTRY_E_CANCELED)
        (void)fail_canceled(run, run->started + 1, error.text, &error);
    if (status) {
        gy_trial_fail(&run->trial, &error);
        run->started++;
        note_failure(run, &error);
        return tell(run, err);
    }
    if (*done == 0)
        return count_start(run, GANTRY_OK, NULL);
    run->started += *done;
    run->finished = run->started;
    run->completed += *done;
    gy_run_look(run);
    run->last_us = (double)elapsed / 1e3 / (double)*done;
    if (run->edge)
        gy_run_edge_outputs(run, gy_job_turn(&run->job, run->finished));
    gy_trial_note(&run->trial, *done, gy_now_ns() - began);
    return GANTRY_OK;
}

static gantry_status repeat(gantry_run *run, uint64_t starts, gantry_error *err)
{
    bool together = can_be_series(run);
    for (uint64_t i = 0, done = 0; i < starts; i += done ? done : 1) {
        GY_TRY(together ? start_series(run, starts - i, &done, err) : start(run, NULL, err));
        together = done > 0;
    }
    return starts ? wait_for(run, run->started, err) : GANTRY_OK;
}

gantry_status gantry_run_repeat(gantry_run *run, uint64_t starts, gantry_error *err)
{
    GY_USE_RUN(run, repeat(run, starts, err), err);
}
