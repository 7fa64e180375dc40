/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of gemm_bias, and what its result goes through. */
#ifndef GY_KERNELS_GEMM_BIAS_H
#define GY_KERNELS_GEMM_BIAS_H

enum {
    GY_GEMM_BIAS_TA,
    GY_GEMM_BIAS_TB,
    GY_GEMM_BIAS_ACTIVATION,
    GY_GEMM_BIAS_A,
    GY_GEMM_BIAS_B,
    GY_GEMM_BIAS_BIAS,
    GY_GEMM_BIAS_C
};

/* Hendrycks, Gimpel, "Gaussian error linear units", 2016. GELU is the form with tanh, as cuBLASLt has it:
 * x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). GELU_ERF is x / 2 (1 + erf(x / sqrt(2))). */
enum { GY_ACTIVATION_NONE, GY_ACTIVATION_RELU, GY_ACTIVATION_GELU, GY_ACTIVATION_GELU_ERF };
#define GY_GELU_SLOPE 0.79788456080286535588 /* sqrt(2 / pi) */
#define GY_GELU_CUBE  0.044715
#define GY_GELU_INNER 0.70710678118654752440 /* 1 / sqrt(2) */

#endif
