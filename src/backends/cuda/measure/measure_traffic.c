/* SPDX-License-Identifier: Apache-2.0 */
/* Copies at once, all of one size: what they share shows in how long they take together. */
#include "backends/cuda/measure/flows.h"
#include "backends/cuda/measure/measure.h"

#include "base/error.h"

enum { ROUNDS = 4 }; /* copies of each stream, so that beginning together and ending together weigh little */

typedef struct pattern {
    gy_traffic_pattern what;
    uint32_t gpu; /* the GPU whose port it is; GY_HARNESS_HOST: it is shared */
    gy_flows flows;
} pattern;

static bool add(const gy_harness *harness, pattern *p, gy_stream_copy f)
{
    return gy_flows_add(harness, &p->flows, f);
}

/* All that goes one way is on the stream of the other end, so that no stream has two copies at once. */
static bool add_of(const gy_harness *harness, pattern *p, uint32_t k)
{
    uint32_t next = (k + 1) % harness->gpus;
    switch (p->what) {
    case GY_TRAFFIC_OUT:
        return k == p->gpu || add(harness, p, (gy_stream_copy){ { k, 0 }, p->gpu, k, 0 });
    case GY_TRAFFIC_IN:
        return k == p->gpu || add(harness, p, (gy_stream_copy){ { k, 0 }, k, p->gpu, 0 });
    case GY_TRAFFIC_BOTH:
        return k != p->gpu || (add(harness, p, (gy_stream_copy){ { k, 0 }, k, next, 0 }) &&
                               add(harness, p, (gy_stream_copy){ { next, 1 }, next, k, 0 }));
    case GY_TRAFFIC_PAIRS:
        return add(harness, p, (gy_stream_copy){ { k, 0 }, k, next, 0 });
    case GY_TRAFFIC_HOST_OUT:
        return add(harness, p, (gy_stream_copy){ { k, 0 }, GY_HARNESS_HOST, k, 0 });
    case GY_TRAFFIC_HOST_IN:
        return add(harness, p, (gy_stream_copy){ { k, 0 }, k, GY_HARNESS_HOST, 0 });
    case GY_TRAFFIC_HOST_BOTH:
        return add(harness, p, (gy_stream_copy){ { k, 0 }, GY_HARNESS_HOST, k, 0 }) &&
               add(harness, p, (gy_stream_copy){ { k, 1 }, k, GY_HARNESS_HOST, p->flows.bytes });
    }
    return true;
}

static gantry_status measure_pattern(gy_measure *m, pattern *p, gantry_error *err)
{
    gy_harness *harness = &m->harness;
    int64_t until_ns = gy_measure_next(m);
    bool ok = true;
    p->flows.rounds = ROUNDS;
    p->flows.bytes = p->what == GY_TRAFFIC_HOST_BOTH ? harness->bytes / 2 : harness->bytes;
    for (uint32_t k = 0; k < harness->gpus && ok; k++)
        ok = add_of(harness, p, k);
    if (!ok || p->flows.flows.count == 0)
        return ok ? GANTRY_OK : gy_fail_nomem(err);
    gy_workload workload = gy_flows_workload(&p->flows);
    gy_measured_traffic made = { .what = p->what,
                                 .memory = p->gpu == GY_HARNESS_HOST ? GY_MACHINE_NONE : harness->gpu[p->gpu].memory };
    gantry_status status = gy_harness_sample(harness, &workload, until_ns, &made.time, err);
    made.bytes = (double)p->flows.bytes * (double)p->flows.flows.count;
    made.time.us /= ROUNDS;
    made.time.mad_us /= ROUNDS;
    return status || gy_vec_push(&m->to->traffic, made) ? status : gy_fail_nomem(err);
}

/* The i-th pattern; false past the last. Between GPUs there is something to measure from two on, at ports from three.
 */
static bool pattern_at(const gy_harness *harness, uint32_t i, pattern *p)
{
    static const gy_traffic_pattern alone[] = { GY_TRAFFIC_HOST_OUT, GY_TRAFFIC_HOST_IN, GY_TRAFFIC_HOST_BOTH,
                                                GY_TRAFFIC_PAIRS };
    static const gy_traffic_pattern port[] = { GY_TRAFFIC_BOTH, GY_TRAFFIC_OUT, GY_TRAFFIC_IN };
    uint32_t alones = harness->gpus > 1 ? 4 : 3, ports = harness->gpus > 2 ? 3 : harness->gpus > 1 ? 1 : 0;
    *p = (pattern){ .what = i < alones ? alone[i] : GY_TRAFFIC_OUT, .gpu = GY_HARNESS_HOST };
    if (i >= alones && i < alones + ports * harness->gpus) {
        p->what = port[(i - alones) / harness->gpus];
        p->gpu = (i - alones) % harness->gpus;
    }
    return i < alones + ports * harness->gpus;
}

static uint32_t count(const gy_measure *m)
{
    uint32_t i = 0;
    pattern p;
    while (pattern_at(&m->harness, i, &p))
        i++;
    return i;
}

static gantry_status measure(gy_measure *m, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    pattern p;
    for (uint32_t i = 0; !status && pattern_at(&m->harness, i, &p); i++) {
        status = measure_pattern(m, &p, err);
        gy_flows_free(&p.flows);
    }
    return status;
}

const gy_figures gy_figures_traffic = { "traffic", 2, count, measure };
