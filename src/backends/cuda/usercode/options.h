/* SPDX-License-Identifier: Apache-2.0 */
/* The options that NVRTC is given. */
#ifndef GY_CUDA_USERCODE_OPTIONS_H
#define GY_CUDA_USERCODE_OPTIONS_H

#include "backends/cuda/nvidia/nvrtc_api.h"
#include "base/vec.h"
#include <stdbool.h>

typedef struct gy_target {
    int architecture;
    bool exact; /* code for it; else PTX, which the driver compiles for what is newer */
} gy_target;

typedef GY_VEC(char *) gy_nvrtc_options;

/* `more`: further options, up to NULL; `folders`: where the user's own includes are. False: out of memory; free what
 * there is in any case. */
bool gy_nvrtc_options_make(gy_nvrtc_options *options, const gy_nvrtc *nvrtc, gy_target target, const char *const *more,
                           const char *const *folders, size_t count);
void gy_nvrtc_options_free(gy_nvrtc_options *options);

#endif
