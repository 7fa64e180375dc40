/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Virtual devices on a CPU: each a thread with a memory of its own. Their speeds are declared, not measured: round
 * figures for plain C on one core, so that the same count gives the same machine, and with it the same schedule, on
 * every computer.
 */
#include "machine/virtual.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

#define GIB             (UINT64_C(1) << 30)
#define CORE_GFLOPS_F32 8.0
#define CORE_GFLOPS_F64 4.0
#define CORE_GBS        12.0                 /* bytes read and written per second by one core */
#define COPY_RATE       INT64_C(6000000000)  /* one memcpy: half of that */
#define RAM_RATE        INT64_C(24000000000) /* copied bytes per second, all copies together */
#define COPY_LATENCY_US 0.5
#define LAUNCH_US       0.3
#define MOST_DEVICES    (GY_MOST_MEMORIES - 1)

const char gy_virtual_source[] = "declared, not measured: virtual devices on a CPU, one core of plain C each";

static bool name_number(gantry_machine *m, const char **id, const char *prefix, uint32_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%s%u", prefix, number);
    *id = gy_machine_text(m, text);
    return *id != NULL;
}

static bool add_routes(gantry_machine *m)
{
    const uint32_t ram = 0;
    for (uint32_t from = 0; from < m->memories; from++)
        for (uint32_t to = 0; to < m->memories; to++)
            if ((from != to || m->memory[from].host) &&
                !gy_machine_link(m, from, to, gy_ticks_from_us(COPY_LATENCY_US), COPY_RATE, (gy_via){ &ram, 1 }))
                return false;
    return true;
}

gantry_machine *gy_virtual_machine(const char *name, uint32_t devices, const gy_virtual_device *each,
                                   uint64_t host_bytes)
{
    gantry_machine *m = gy_machine_new(name, (gy_machine_size){ devices + 1, devices, 1 });
    if (!m)
        return NULL;
    m->launch = gy_ticks_from_us(LAUNCH_US);
    m->source = gy_virtual_source;
    m->memory[0] = (gy_memory){ "host", host_bytes, 0, true, true, -1, 0, 0, 0, 0 };
    m->resource[0] = (gy_resource){ "ram", RAM_RATE };
    for (uint32_t i = 0; i < devices; i++) {
        gy_memory *y = &m->memory[i + 1];
        gy_device *d = &m->device[i];
        *y = (gy_memory){ "", each[i].bytes, 0, false, true, each[i].numa, 0, 0, 0, 0 };
        *d = (gy_device){ .kind = "cpu",
                          .memory = i + 1,
                          .lanes = 1,
                          .copy_engines = 1,
                          .ordinal = -1,
                          .bandwidth_gbs = CORE_GBS,
                          .launch = m->launch };
        d->gflops[GANTRY_F32] = CORE_GFLOPS_F32;
        d->gflops[GANTRY_F64] = CORE_GFLOPS_F64;
        if (!name_number(m, &y->id, "mem", i) || !name_number(m, &d->id, "dev", i))
            goto free_machine;
    }
    if (add_routes(m) && gy_machine_compose(m))
        return m;
free_machine:
    gantry_machine_free(m);
    return NULL;
}

gantry_status gantry_machine_virtual(gantry_machine **machine, int devices, gantry_error *err)
{
    GY_NEED(machine, err);
    if (devices < 1 || devices > MOST_DEVICES)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "cannot make %d virtual devices; give 1 to %d", devices,
                       MOST_DEVICES);
    gy_virtual_device *each = gy_calloc((size_t)devices, sizeof *each);
    for (int i = 0; each && i < devices; i++)
        each[i] = (gy_virtual_device){ 8 * GIB, -1 };
    char name[32];
    snprintf(name, sizeof name, "host-%d", devices);
    gantry_machine *m = each ? gy_virtual_machine(name, (uint32_t)devices, each, 64 * GIB) : NULL;
    gy_free(each);
    if (!m)
        return gy_fail_nomem(err);
    *machine = m;
    return GANTRY_OK;
}
