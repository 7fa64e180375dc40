/* SPDX-License-Identifier: Apache-2.0 */
/* Work by hand: options are checked here, the rest is the back end's module. */
#include "run/backend.h"

#include "base/error.h"
#include "base/versioned.h"

struct gantry_raw {
    gy_module module;
    const gy_raw_table *table;
    void *state;
    gantry_machine *machine;
};

static gantry_status take_options(gantry_raw_options *o, const gantry_raw_options *given, gantry_error *err)
{
    gantry_status status = gy_struct_read(o, sizeof *o, given, "gantry_raw_options", err);
    if (status) {
        return status;
    }
    if (o->copies < 1 || o->nodes < 1 || o->devices < 0 || !o->shape || o->bytes > UINT64_C(1) << 40) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "raw options: %d copies, %lld nodes, %d devices, %s shape, %llu bytes; there is at least one "
                       "copy and node, no negative count of devices, a shape, and at most 1 TiB",
                       o->copies, (long long)o->nodes, o->devices, o->shape ? "a" : "no", (unsigned long long)o->bytes);
    }
    return GANTRY_OK;
}

gantry_status gantry_raw_new(gantry_raw **raw, const char *backend, const char *what, const gantry_machine *machine,
                             const gantry_raw_options *options, gantry_error *err)
{
    gantry_raw_options all = GANTRY_RAW_OPTIONS_INIT;
    gantry_status status = take_options(&all, options, err);
    if (status) {
        return status;
    }
    if (!raw || !backend || !what || !machine) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "raw, backend, what or machine is NULL");
    }
    gantry_raw *made = gy_calloc(1, sizeof *made);
    if (!made) {
        return gy_fail_nomem(err);
    }
    made->machine = gy_machine_ref((gantry_machine *)(uintptr_t)machine);
    status = gy_backend_raw(&made->table, &made->module, backend, err);
    status = status ? status : made->table->open(&made->state, what, made->machine, &all, err);
    if (status) {
        gantry_raw_free(made);
        return status;
    }
    *raw = made;
    return GANTRY_OK;
}

gantry_status gantry_raw_time(gantry_raw *raw, double *us, double *bytes, gantry_error *err)
{
    double time = 0, moved = 0;
    if (!raw) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "raw is NULL");
    }
    gantry_status status = raw->table->time(raw->state, &time, &moved, err);
    if (!status && us) {
        *us = time;
    }
    if (!status && bytes) {
        *bytes = moved;
    }
    return status;
}

void gantry_raw_free(gantry_raw *raw)
{
    if (!raw) {
        return;
    }
    if (raw->state) {
        raw->table->close(raw->state);
    }
    gy_module_close(&raw->module);
    gantry_machine_free(raw->machine);
    gy_free(raw);
}
