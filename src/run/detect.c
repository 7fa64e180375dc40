/* SPDX-License-Identifier: Apache-2.0 */
/* This computer: what the machine layer sees of it, with the GPUs that back ends find. */
#include "run/backend.h"

#include "base/error.h"

gantry_status gantry_machine_detect(gantry_machine **machine, const void *options, gantry_error *err)
{
    GY_NEED(machine, err);
    if (options) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "`options` of gantry_machine_detect is not NULL; there are none in this version");
    }
    gy_gpus gpus;
    gantry_status status = gy_backend_discover(&gpus, err);
    if (status == GANTRY_OK) {
        status = gy_machine_detect(machine, &gpus, err);
        gy_gpus_free(&gpus);
    }
    return status;
}
