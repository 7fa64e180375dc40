/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is measured of a computer with GPUs, family after family. Where time is short there are fewer
 * samples, not fewer figures. */
#include "backends/cuda/measure/measure.h"

#include "base/clock.h"
#include "base/error.h"

#define DEFAULT_SECONDS  45.0
#define DEFAULT_PATIENCE 10.0

int64_t gy_measure_next(gy_measure *m)
{
    if (m->options->progress)
        m->options->progress(m->options->user, m->what, m->done, m->of);
    m->done++;
    return gy_budget_next(&m->budget);
}

static const gy_figures *const families[] = { &gy_figures_issue,      &gy_figures_gates,   &gy_figures_copies,
                                              &gy_figures_carried,    &gy_figures_traffic, &gy_figures_kernels,
                                              &gy_figures_collectives };
enum { FAMILIES = sizeof families / sizeof *families };

/* Shares are of what is left: a family that ends early leaves the rest to those after it. */
static gantry_status measure_all(gy_measure *m, int64_t until_ns, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    uint32_t count[FAMILIES];
    double shares = 0;
    for (int i = 0; i < FAMILIES; i++) {
        count[i] = families[i]->count(m);
        m->of += count[i];
        shares += count[i] ? families[i]->share : 0;
    }
    for (int i = 0; i < FAMILIES && !status; i++) {
        if (count[i] == 0)
            continue;
        int64_t now = gy_now_ns(), rest = until_ns - now;
        m->budget = (gy_budget){ now + (int64_t)((double)rest * families[i]->share / shares), count[i] };
        m->what = families[i]->what;
        status = families[i]->measure(m, err);
        shares -= families[i]->share;
    }
    return status;
}

static void open_nccl(gy_measure *m)
{
    gantry_error why = { 0 };
    if (m->harness.gpus > 1 && gy_nccl_load(&m->nccl, &why))
        gy_text_printf(&m->to->notes, "not measured: collectives of NCCL: %s\n", why.text);
}

gantry_status gy_cuda_measure(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                              gantry_error *err)
{
    gy_measure m = { .options = options, .to = to };
    double seconds = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
    int64_t until_ns = gy_now_ns() + (int64_t)(seconds * 1e9);
    *to = (gy_measured){ 0 };
    if (options->progress)
        options->progress(options->user, "opening the GPUs", 0, 0);
    gy_harness_want want = { .bytes = GY_HARNESS_BYTES, .host = GY_HARNESS_BYTES, .less = true, .peers = true };
    want.patience = options->patience > 0 ? options->patience : DEFAULT_PATIENCE;
    gantry_status status = gy_harness_open(&m.harness, machine, &want, err);
    if (status)
        return status;
    gy_nvml_open(&m.nvml, NULL);
    open_nccl(&m);
    status = gy_cuda_fingerprint(&m.harness.d, &m.nvml, &to->fingerprint, err);
    status = status ? status : measure_all(&m, until_ns, err);
    status = status || !to->notes.failed ? status : gy_fail_nomem(err);
    gy_nvml_close(&m.nvml);
    gy_harness_close(&m.harness);
    if (status)
        gy_measured_free(to);
    else if (options->progress)
        options->progress(options->user, "done", m.of, m.of);
    return status;
}
