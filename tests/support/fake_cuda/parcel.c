/* SPDX-License-Identifier: Apache-2.0 */
#include "parcel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A launch with its arguments, items of lists behind them, in one block that the driver copies. */
enum { MOST_ARGS = 160 };
typedef struct parcel {
    gantry_kernel_fn host;
    gantry_launch launch;
    gantry_arg arg[MOST_ARGS];
} parcel;

static bool pack(parcel *p, const gantry_launch *l)
{
    int32_t used = l->args;
    if (used > MOST_ARGS)
        return false;
    p->launch = *l;
    memcpy(p->arg, l->arg, (size_t)used * sizeof *p->arg);
    for (int32_t i = 0; i < l->args; i++) {
        size_t count = l->arg[i].items ? (size_t)l->arg[i].count : 0;
        if ((size_t)used + count > MOST_ARGS)
            return false;
        if (count)
            memcpy(&p->arg[used], l->arg[i].items, count * sizeof *p->arg);
        used += (int32_t)count;
    }
    return true;
}

/* Addresses inside the parcel are those of the copy that runs. */
static void unpack(parcel *p)
{
    int32_t used = p->launch.args;
    p->launch.arg = p->arg;
    for (int32_t i = 0; i < p->launch.args; i++) {
        if (p->arg[i].items) {
            p->arg[i].items = &p->arg[used];
            used += (int32_t)p->arg[i].count;
        }
    }
}

static void run(const fakeCudaLaunch *l, void **params)
{
    (void)l;
    parcel *p = params[0];
    int32_t own = 0, *told = p->launch.status;
    unpack(p);
    p->launch.status = &own; /* a host version may clear the word, which a kernel would not */
    if (p->host(&p->launch) != GANTRY_OK && own == 0)
        own = -1;
    if (own)
        *told = own;
}

gantry_status parcel_queue(parcel_driver driver, const gantry_launch *launch, gantry_kernel_fn host, void *handle)
{
    static const size_t size = sizeof(parcel);
    parcel *p = calloc(1, sizeof *p);
    p->host = host;
    gantry_status status = pack(p, launch) ? GANTRY_OK : GANTRY_E_UNSUPPORTED;
    p->launch.handle = handle;
    p->launch.stream = NULL;
    if (status == GANTRY_OK) {
        CUfunction function = driver.make("host version", run, &size, 1);
        CUresult code = driver.launch(function, 1, 1, 1, 1, 1, 1, 0, launch->stream, (void *[]){ p }, NULL);
        status = code == CUDA_SUCCESS ? GANTRY_OK : GANTRY_E_DEVICE;
    }
    free(p);
    return status;
}
