/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --calibrate FILE: the machine of the run, with the times that its kernels and copies took. */
#include "runs/run.h"
#include <string.h>

int check_calibrate(const options *o)
{
    if (!o->calibrate || !o->backend || strcmp(o->backend, "sim") != 0)
        return EXIT_FINE;
    complain("gantry run: --calibrate needs times that were measured, and back end \"sim\" gives predicted ones; "
             "use host or cuda\n");
    return EXIT_USAGE;
}

int sample_start(const session *s)
{
    gantry_error err;
    if (s->o->calibrate)
        return gantry_run_sample(s->run, &err) ? fail(&err) : EXIT_FINE;
    if (s->known.here && records_times(s)) /* nobody asked for it */
        (void)!gantry_run_sample(s->run, NULL);
    return EXIT_FINE;
}

#define SHORT_US 0.25e6 /* starts that take no longer are made more often: medians of few have what disturbed one */

static gantry_status start_apart(const session *s, gantry_run *run, gantry_error *err)
{
    int warm_up = s->measured_us <= SHORT_US ? 4 : 1, samples = s->measured_us <= SHORT_US ? 10 : 4;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < warm_up + samples && !status; i++) {
        uint64_t ticket;
        status = gantry_run_start(run, &ticket, err);
        status = status ? status : gantry_run_wait(run, ticket, err);
        if (!status && i >= warm_up)
            status = gantry_run_sample(run, err);
    }
    return status;
}

/* The same by a run of its own in which GPUs compute one op after the other, since what others slow down does not count
 * and so would have no time. Another back end has no such run, and a memory may be too small for two. NULL then. */
static gantry_machine *measure_apart(session *s)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_run *run = NULL;
    gantry_run_options ro = GANTRY_RUN_OPTIONS_INIT;
    ro.backend = "cuda";
    ro.allow_code = s->o->allow_code;
    ro.record_trace = 1;
    ro.threads = (int32_t)s->o->threads;
    ro.apart = 1;
    bool is_other = (s->o->backend && strcmp(s->o->backend, "cuda") != 0 && strcmp(s->o->backend, "auto") != 0) ||
                    s->ranks.network || reads_once(s) || gantry_run_new(&run, s->schedule, &ro, &err);
    if (is_other)
        return NULL;
    bool fits = !bind_inputs(s, run) && !start_apart(s, run, &err) && !gantry_run_calibrated(&machine, run, &err);
    gantry_run_free(run);
    return fits ? machine : NULL;
}

int write_calibrated(session *s, gantry_files *files)
{
    gantry_error err;
    gantry_machine *machine = measure_apart(s);
    char *text = NULL;
    size_t length = 0;
    if (!machine && gantry_run_calibrated(&machine, s->run, &err))
        return fail(&err);
    gantry_status status = gantry_machine_json(machine, &text, &length, &err);
    int code = status ? fail(&err) : add_text(files, s->o->calibrate, text, length);
    gantry_free(text);
    gantry_machine_free(machine);
    return code;
}

void print_calibrated(FILE *to, const session *s)
{
    if (s->o->calibrate)
        fprintf(to, "  calibrated: %s\n", s->o->calibrate);
}
