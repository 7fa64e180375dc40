/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a launch that are carried out at once, each on a stream of its own. */
#ifndef GY_CUDA_MEASURE_MEASURE_SHARE_H
#define GY_CUDA_MEASURE_MEASURE_SHARE_H

#include "backends/cuda/measure/recipe.h"

typedef struct gy_twins {
    gy_recipe_launch at[GY_HARNESS_STREAMS - 1];
    uint32_t count;
} gy_twins;

/* As many as there are streams and memory for; they hold what `of` holds now, so it is called before `of` is launched.
 */
void gy_twins_open(gy_twins *twins, gy_harness *harness, const gy_recipe_launch *of);
void gy_twins_free(gy_twins *twins, gy_harness *harness);
/* Thousandths of the GPU that one takes, which takes `alone` by itself: no less than one of `count`, as far as can be
 * seen; those that would make it last too long are freed. 0: there is no room for two, or no graph can be made of them.
 */
gantry_status gy_twins_share(gy_twins *twins, gy_harness *harness, const gy_figure *alone, int64_t until_ns,
                             uint32_t *share, gantry_error *err);

#endif
