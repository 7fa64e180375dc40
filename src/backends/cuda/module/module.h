/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the module are to each other. */
#ifndef GY_CUDA_MODULE_MODULE_H
#define GY_CUDA_MODULE_MODULE_H

#include "run/backend.h"

extern const gy_backend gy_backend_cuda;
extern const gy_raw_table gy_cuda_raw; /* raw.c */

/* usable.c: whether a schedule can run here; NULL: whether any can. */
gantry_status gy_cuda_usable(const gantry_schedule *schedule, gantry_error *err);
/* discover.c and describe.c: see gy_backend_module. */
gantry_status gy_cuda_discover(gy_gpus *found, gantry_error *err);
void gy_cuda_describe(gy_text *to);
gantry_status gy_cuda_measure(const gantry_machine *machine, const gy_measure_options *options, gy_measured *to,
                              gantry_error *err);
struct gy_driver;
/* discover.c: the same with a driver that is open and sees so many devices. */
gantry_status gy_cuda_discover_with(const struct gy_driver *driver, int devices, gy_gpus *found, gantry_error *err);

#endif
