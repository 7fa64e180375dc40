/* SPDX-License-Identifier: Apache-2.0 */
/* How the host version and the launcher of attention_append.cu take arrays apart. */
#ifndef GY_KERNELS_ATTENTION_APPEND_H
#define GY_KERNELS_ATTENTION_APPEND_H

#include "kernels/manifest.h"

enum {
    GY_TOKEN_BASE,
    GY_TOKEN_SCALE,
    GY_TOKEN_PLACE,
    GY_TOKEN_Q,
    GY_TOKEN_K,
    GY_TOKEN_V,
    GY_TOKEN_KEYS,
    GY_TOKEN_VALUES,
    GY_TOKEN_Y
};

/* attention_append.cu has the same. */
typedef struct gy_token {
    int64_t heads, places, dim, each; /* of the cache; heads of q for each of its heads */
    double base, scale;
} gy_token;

#endif
