/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_ATTENTION_GRAD_H
#define GY_KERNELS_ATTENTION_GRAD_H

#include "kernels/attention/attention.h"

/* Arguments behind those of attention. */
enum {
    GY_ATTENTION_GRAD_Y = GY_ATTENTION_V + 1,
    GY_ATTENTION_GRAD_DY,
    GY_ATTENTION_GRAD_DQ,
    GY_ATTENTION_GRAD_DK,
    GY_ATTENTION_GRAD_DV,
    GY_ATTENTION_GRAD_LSE /* may not be given */
};

#endif
