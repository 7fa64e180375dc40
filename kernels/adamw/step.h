/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and numbers of a step of adamw, which both versions share. */
#ifndef GY_KERNELS_ADAMW_STEP_H
#define GY_KERNELS_ADAMW_STEP_H

#include "kernels/adam.h"
#include "kernels/manifest.h"
#include <math.h>

enum { GY_ADAM_RATE, GY_ADAM_STEP, GY_ADAM_BETA1, GY_ADAM_BETA2, GY_ADAM_EPS, GY_ADAM_DECAY }; /* scalars */
enum { GY_ADAM_W = GY_ADAM_DECAY + 1, GY_ADAM_G, GY_ADAM_M, GY_ADAM_V };                       /* regions */

static inline gy_adam gy_adam_of(const gantry_launch *l)
{
    double beta1 = l->arg[GY_ADAM_BETA1].number, beta2 = l->arg[GY_ADAM_BETA2].number;
    double step = l->arg[GY_ADAM_STEP].number;
    return (gy_adam){ .rate = l->arg[GY_ADAM_RATE].number,
                      .beta1 = beta1,
                      .beta2 = beta2,
                      .eps = l->arg[GY_ADAM_EPS].number,
                      .decay = l->arg[GY_ADAM_DECAY].number,
                      .rest1 = 1 - beta1,
                      .rest2 = 1 - beta2,
                      .bias1 = 1 - pow(beta1, step),
                      .bias2 = 1 - pow(beta2, step) };
}

#endif
