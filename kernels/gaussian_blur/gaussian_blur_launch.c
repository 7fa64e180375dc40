/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

GY_CUDA_KERNEL(gaussian_blur, gy_blur_launch, GY_IMAGE_DTYPES, "", "_far")
