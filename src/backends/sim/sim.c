/* SPDX-License-Identifier: Apache-2.0 */
/* The back end that moves nothing: a start takes the predicted time and no time. */
#include "base/error.h"
#include "base/memory.h"
#include "run/backend.h"

typedef struct sim {
    const gy_job *job;
    gy_op_time *time;
} sim;

static int64_t to_ns(gy_ticks t)
{
    return (t + 500) / 1000;
}

static gantry_status sim_open(void **state, const gy_job *job, gantry_error *err)
{
    const gantry_schedule *s = job->schedule;
    sim *made = gy_calloc(1, sizeof *made);
    gy_op_time *time = gy_calloc(s->ops.count, sizeof *time);
    if (!made || !time) {
        gy_free(made);
        gy_free(time);
        return gy_fail_nomem(err);
    }
    for (size_t i = 0; i < s->ops.count; i++)
        time[i] = (gy_op_time){ to_ns(s->ops.at[i].start), to_ns(s->ops.at[i].end) };
    *made = (sim){ .job = job, .time = time };
    *state = made;
    return GANTRY_OK;
}

static bool sim_close(void *state)
{
    sim *s = state;
    gy_free(s->time);
    gy_free(s);
    return true;
}

static gantry_status sim_put(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    (void)state, (void)instance, (void)rows, (void)err;
    return GANTRY_OK;
}

static gantry_status sim_rebind(void *state, gantry_error *err)
{
    (void)state, (void)err;
    return GANTRY_OK;
}

static gantry_status sim_begin(void *state, uint64_t start, gantry_error *err)
{
    (void)state, (void)start, (void)err;
    return GANTRY_OK;
}

static gantry_status sim_finish(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    (void)start, (void)err;
    const sim *s = state;
    *elapsed_ns = to_ns(s->job->schedule->makespan);
    return GANTRY_OK;
}

static bool sim_idle(void *state)
{
    (void)state;
    return true;
}

static const gy_op_time *sim_times(void *state)
{
    const sim *s = state;
    return s->job->record ? s->time : NULL;
}

const gy_backend gy_backend_sim = {
    .name = "sim",
    .summary = "predicted times only: nothing is executed",
    .executes = false,
    .open = sim_open,
    .close = sim_close,
    .put = sim_put,
    .rebind = sim_rebind,
    .begin = sim_begin,
    .finish = sim_finish,
    .idle = sim_idle,
    .times = sim_times,
};
