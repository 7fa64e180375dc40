/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

GY_CUDA_KERNEL(filter2d, gy_filter_launch, GY_IMAGE_DTYPES, "")
