/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring a machine: the families of figures, a file each. */
#ifndef GY_CUDA_MEASURE_MEASURE_H
#define GY_CUDA_MEASURE_MEASURE_H

#include "backends/cuda/measure/harness_nccl.h"
#include "backends/cuda/nvidia/nvml.h"
#include "run/backend.h"

/* See gy_backend_module. */
gantry_status gy_cuda_measure(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                              gantry_error *err);

typedef struct gy_measure {
    gy_harness harness;
    gy_nvml nvml;
    gy_nccl_api nccl; /* lib.handle NULL: there is none, or one GPU only */
    const gy_measure_options *options;
    gy_measured *to;
    const char *what; /* the family that is measured, for progress */
    uint32_t done, of;
    gy_budget budget; /* of the family */
} gy_measure;

/* Tells progress; until when the next figure of the family may take samples. */
int64_t gy_measure_next(gy_measure *m);

/* A family: how many figures it has (0: none here), which share of the time it is given, and how it is measured. */
typedef struct gy_figures {
    const char *what;
    double share;
    uint32_t (*count)(const gy_measure *m);
    gantry_status (*measure)(gy_measure *m, gantry_error *err);
} gy_figures;

extern const gy_figures gy_figures_issue;       /* measure_issue.c: launches, events, graphs */
extern const gy_figures gy_figures_gates;       /* measure_gates.c: rows between GPUs in graphs; behind `issue` */
extern const gy_figures gy_figures_copies;      /* measure_copy.c: each pair of memories */
extern const gy_figures gy_figures_carried;     /* measure_carried.c: small copies by kernels */
extern const gy_figures gy_figures_traffic;     /* measure_traffic.c: several copies at once */
extern const gy_figures gy_figures_kernels;     /* measure_kernel.c: each kernel of the library */
extern const gy_figures gy_figures_collectives; /* measure_collectives.c: those of NCCL */

/* fingerprint.c: what has to be the same for figures to hold. `nvml` may be one that is not there. */
gantry_status gy_cuda_fingerprint(const gy_driver *driver, const gy_nvml *nvml, gy_text *to, gantry_error *err);
/* MHz of a device's SMs now; 0: NVML does not tell. */
double gy_nvml_clock(const gy_nvml *nvml, const gy_driver *driver, const gantry_machine *machine, uint32_t device);

#endif
