/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with figures that were measured: a back end measures, the machine layer makes a machine of it. */
#include "run/backend.h"

#include "base/error.h"
#include "machine/calibrate.h"

static gantry_status check_options(const gantry_calibrate_options *o, gantry_error *err)
{
    if (o->struct_size != sizeof *o) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "struct_size of the calibrate options is %zu, not %zu; begin with "
                       "GANTRY_CALIBRATE_OPTIONS_INIT",
                       o->struct_size, sizeof *o);
    }
    const double value[] = { o->seconds, o->patience };
    for (int i = 0; i < 2; i++) {
        if (!(value[i] >= 0 && value[i] <= 86400)) {
            return gy_fail(err, GANTRY_E_INVALID, NULL, "%s of the calibrate options is %g; it is from 0 to 86400",
                           i ? "patience" : "seconds", value[i]);
        }
    }
    return GANTRY_OK;
}

static gantry_status measure(gantry_machine **out, const gantry_machine *machine, const gantry_calibrate_options *o,
                             gantry_error *err)
{
    gy_measure_options options = { o->seconds, o->patience, o->progress, o->user };
    gy_measured measured = { 0 };
    gy_module module = { 0 };
    gantry_status status = gy_backend_measure(machine, &options, &measured, &module, err);
    if (status) {
        return status;
    }
    status = gy_machine_calibrated(out, machine, &measured, err);
    gy_measured_free(&measured);
    gy_module_close(&module); /* what is measured names kernels of the module */
    return status;
}

gantry_status gantry_machine_calibrate(gantry_machine **machine, const gantry_machine *from,
                                       const gantry_calibrate_options *options, gantry_error *err)
{
    static const gantry_calibrate_options none = GANTRY_CALIBRATE_OPTIONS_INIT;
    gantry_machine *detected = NULL;
    if (!machine) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "machine is NULL");
    }
    options = options ? options : &none;
    gantry_status status = check_options(options, err);
    if (!status && !from) {
        status = gantry_machine_detect(&detected, NULL, err);
    }
    status = status ? status : measure(machine, from ? from : detected, options, err);
    gantry_machine_free(detected);
    return status;
}
