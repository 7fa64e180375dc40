/* SPDX-License-Identifier: Apache-2.0 */
#include "run/measure/chain.h"

#include "base/clock.h"
#include "base/error.h"
#include <string.h>

/* The first starts of a run, and those behind a pause, take 50 us longer and more on GPUs, most of it in the call: who
 * makes many of them does not see that. Where time is short, fewer come ahead of what is measured. */
enum { WARM = 16, LEAST_WARM = 2, SAMPLES = 5, LEAST = 3 };

gantry_status gy_chain_open(gy_chain *c, const gy_text *text, const gantry_machine *machine, uint32_t calls,
                            const char *replay, double timeout_us, gantry_error *err)
{
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    *c = (gy_chain){ .calls = calls, .replay = replay };
    so.replay = replay;
    so.effort = 0;
    so.policy = "heft";
    so.spill = "off";
    ro.backend = "cuda";
    ro.timeout_us = timeout_us;
    if (text->failed)
        return gy_fail_nomem(err);
    GY_TRY(gantry_graph_parse(&c->graph, text->at, text->length, "chain", NULL, NULL, err));
    GY_TRY(gantry_schedule_new(&c->schedule, c->graph, machine, &so, err));
    return gantry_run_new(&c->run, c->schedule, &ro, err);
}

void gy_chain_close(gy_chain *c)
{
    gantry_run_free(c->run);
    gantry_schedule_free(c->schedule);
    gantry_graph_free(c->graph);
    *c = (gy_chain){ 0 };
}

static gantry_status time_chain(const gy_chain *c, double *us, gantry_error *err)
{
    uint64_t ticket;
    int64_t begin = gy_now_ns();
    gantry_status status = gantry_run_start(c->run, &ticket, err);
    status = status ? status : gantry_run_wait(c->run, ticket, err);
    *us = (double)(gy_now_ns() - begin) / 1e3;
    return status;
}

/* Starts in another way cost something else, which would be taken for the calls'. */
static gantry_status check_replay(const gy_chain *c, gantry_error *err)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    gantry_status status = gantry_run_get_info(c->run, &info, err);
    if (!status && strncmp(info.replay, c->replay, strlen(c->replay)) != 0)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "it was not replayed as \"%s\": %s", c->replay, info.replay);
    return status;
}

gantry_status gy_chain_sample(const gy_chain *few, const gy_chain *many, int64_t until_ns, gy_figure *figure,
                              gy_figure *start, gantry_error *err)
{
    double us[SAMPLES], starts[SAMPLES], a, b;
    uint32_t samples = 0;
    gantry_status status = GANTRY_OK;
    for (int i = 0; samples < SAMPLES && !status && (samples < LEAST || gy_now_ns() < until_ns); i++) {
        status = time_chain(few, &a, err);
        status = status ? status : time_chain(many, &b, err);
        if (status || i < LEAST_WARM || (i < WARM && gy_now_ns() < until_ns))
            continue;
        starts[samples] = a;
        us[samples++] =
            b > a ? (b - a) / (many->calls - few->calls) : b / many->calls; /* something disturbed it: an upper bound */
    }
    status = status ? status : check_replay(few, err);
    status = status ? status : check_replay(many, err);
    samples = status ? 0 : samples;
    *figure = gy_figure_of(us, samples);
    if (start)
        *start = gy_figure_of(starts, samples);
    return status;
}
