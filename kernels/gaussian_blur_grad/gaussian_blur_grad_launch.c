/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

GY_CUDA_KERNEL(gaussian_blur_grad, gy_blur_launch, GANTRY_DTYPE_BIT(GANTRY_F32), "", "_far")
