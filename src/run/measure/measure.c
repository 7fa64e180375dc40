/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with figures that were measured: a back end measures, the machine layer makes a machine of it. */
#include "run/backend.h"

#include "base/error.h"
#include "base/versioned.h"
#include "machine/calibrate.h"
#include "run/measure/collectives.h"
#include "run/measure/workers.h"
#include <string.h>

#define DEFAULT_SECONDS 45.0
#define SHARE           0.25 /* of the time, for collectives that are run as graphs */
#define WHEN            0.02 /* of the time, for nodes with a flag */
#define WORKERS         0.1  /* of the time, for workers of resident kernels */

static gantry_status take_options(gantry_calibrate_options *o, const gantry_calibrate_options *given, gantry_error *err)
{
    GY_TRY(gy_struct_read(o, sizeof *o, given, "gantry_calibrate_options", err));
    const double value[] = { o->seconds, o->patience };
    for (int i = 0; i < 2; i++) {
        if (!(value[i] >= 0 && value[i] <= 86400)) {
            return gy_fail(err, GANTRY_E_INVALID, NULL, "%s of the calibrate options is %g; it is from 0 to 86400",
                           i ? "patience" : "seconds", value[i]);
        }
    }
    return GANTRY_OK;
}

/* Passes on the progress of a back end, except for its end: more is measured after that. */
typedef struct relay {
    gantry_progress_fn progress;
    void *user;
    size_t of;
} relay;

static void pass_on(void *user, const char *what, size_t done, size_t of)
{
    relay *r = user;
    r->of = of;
    if (strcmp(what, "done") != 0)
        r->progress(r->user, what, done, of);
}

/* Collectives, and workers, are run on a machine that has all that was measured before. GPUs may wait for each other
 * there, so what may not come to an end comes last. */
static gantry_status measure_rest(gy_measured *measured, const gantry_machine *machine, double seconds, relay *r,
                                  gantry_error *err)
{
    gantry_machine *so_far = NULL;
    gantry_status status = gy_machine_calibrated(&so_far, machine, measured, err);
    if (!status && r->progress)
        r->progress(r->user, "collectives", r->of, r->of);
    status = status ? status : gy_measure_collectives(measured, so_far, machine, SHARE * seconds, err);
    if (!status && r->progress)
        r->progress(r->user, "workers", r->of, r->of);
    status = status ? status : gy_measure_when(measured, so_far, WHEN * seconds, err);
    status = status ? status : gy_measure_workers(measured, so_far, machine, WORKERS * seconds, err);
    gantry_machine_free(so_far);
    if (!status && r->progress)
        r->progress(r->user, "done", r->of, r->of);
    return status;
}

static gantry_status measure(gantry_machine **out, const gantry_machine *machine, const gantry_calibrate_options *o,
                             gantry_error *err)
{
    relay r = { o->progress, o->user, 0 };
    double seconds = o->seconds > 0 ? o->seconds : DEFAULT_SECONDS;
    gy_measure_options options = { (1 - SHARE - WHEN - WORKERS) * seconds, o->patience, o->progress ? pass_on : NULL,
                                   &r };
    gy_measured measured = { 0 };
    gy_module module = { 0 };
    gantry_status status = gy_backend_measure(machine, &options, &measured, &module, err);
    if (status)
        return status;
    status = measure_rest(&measured, machine, seconds, &r, err);
    status = status ? status : gy_machine_calibrated(out, machine, &measured, err);
    gy_measured_free(&measured);
    gy_module_close(&module); /* only now: the figures name kernels of the module */
    return status;
}

gantry_status gantry_machine_calibrate(gantry_machine **machine, const gantry_machine *from,
                                       const gantry_calibrate_options *options, gantry_error *err)
{
    gantry_calibrate_options all = GANTRY_CALIBRATE_OPTIONS_INIT;
    gantry_machine *detected = NULL;
    GY_NEED(machine, err);
    gantry_status status = take_options(&all, options, err);
    if (!status && !from)
        status = gantry_machine_detect(&detected, NULL, err);
    status = status ? status : measure(machine, from ? from : detected, &all, err);
    gantry_machine_free(detected);
    return status;
}
