/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a step of adamw, as the host works them out for both versions. */
#ifndef GY_KERNELS_ADAM_H
#define GY_KERNELS_ADAM_H

typedef struct gy_adam {
    double rate, beta1, beta2, eps, decay;
    double rest1, rest2; /* 1 - beta */
    double bias1, bias2; /* 1 - beta^step */
} gy_adam;

#endif
