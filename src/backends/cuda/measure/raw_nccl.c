/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of NCCL as a good program would call them by hand: captured once, one behind another on a stream of each
 * GPU, in one graph that is launched. */
#include "backends/cuda/measure/raw.h"

#include "backends/cuda/measure/bed_nccl.h"
#include "base/error.h"
#include <string.h>

#define PATIENCE 30.0
#define SMALL    (UINT64_C(1) << 20)

struct gy_raw_nccl {
    gy_nccl_api api;
    gy_bed_nccl nccl;
    gy_bed_chain chain;
    bool bad;
};

static gantry_collective kind_of(const char *name)
{
    for (int k = GANTRY_ALL_REDUCE; k <= GANTRY_ALL_TO_ALL; k++) {
        if (strcmp(name, gantry_collective_name((gantry_collective)k)) == 0) {
            return (gantry_collective)k;
        }
    }
    return (gantry_collective)0;
}

static gantry_status time_chain(gy_raw *raw, double *us, gantry_error *err)
{
    gantry_status status = gy_bed_chain_wall(&raw->nccl->chain, us, err);
    raw->nccl->bad = raw->nccl->bad || status;
    return status;
}

/* Once as calls, which is when NCCL connects what it needs. */
static gantry_status make_chain(gy_raw *raw, gantry_collective kind, gantry_error *err)
{
    gy_raw_nccl *n = raw->nccl;
    double unused;
    n->chain = (gy_bed_chain){ .nccl = &n->nccl, .kind = kind, .calls = 1 };
    n->chain.bytes = gy_bed_nccl_bytes(&n->nccl, kind, raw->options.bytes);
    if (!n->chain.bytes) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "%llu bytes are too few for as many GPUs",
                       (unsigned long long)raw->options.bytes);
    }
    gantry_status status = gy_bed_chain_time(&n->chain, &unused, err);
    n->chain.calls = (uint32_t)raw->options.copies;
    status = status ? status : gy_bed_chain_capture(&n->chain, err);
    raw->bytes = (double)n->chain.bytes * n->chain.calls;
    raw->time = time_chain;
    n->bad = status != GANTRY_OK;
    return status;
}

gantry_status gy_raw_nccl_open(gy_raw *raw, const gantry_machine *machine, const char *collective, gantry_error *err)
{
    gy_raw_nccl *n = raw->nccl = gy_calloc(1, sizeof *n);
    gantry_error why = { 0 };
    gantry_collective kind = kind_of(collective);
    gy_bed_want want = { .gpus = (uint32_t)raw->options.devices,
                         .bytes = raw->options.bytes > SMALL ? raw->options.bytes : SMALL,
                         .host = SMALL,
                         .patience = PATIENCE };
    if (!n) {
        return gy_fail_nomem(err);
    }
    if (!kind) {
        return gy_fail(err, GANTRY_E_INVALID, NULL, "there is no collective \"%s\"", collective);
    }
    if (gy_nccl_load(&n->api, &why)) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "%s", why.text);
    }
    gantry_status status = gy_bed_open(&raw->bed, machine, &want, err);
    if (!status && !gy_bed_nccl_can(&raw->bed, raw->bed.gpus)) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "NCCL is called for two GPUs and more, of one kind, and none of them twice");
    }
    status = status ? status : gy_bed_nccl_open(&n->nccl, &raw->bed, &n->api, raw->bed.gpus, err);
    return status ? status : make_chain(raw, kind, err);
}

/* What runs is waited for by whoever closes the bed. */
void gy_raw_nccl_close(gy_raw *raw)
{
    gy_raw_nccl *n = raw->nccl;
    if (n && n->nccl.comm) {
        bool well = !n->bad && gy_bed_settle(&raw->bed);
        gy_bed_chain_free(&n->chain);
        if (well) {
            gy_bed_nccl_close(&n->nccl);
        } else {
            gy_bed_nccl_abort(&n->nccl, NULL);
        }
    }
    gy_free(n);
    raw->nccl = NULL;
}
