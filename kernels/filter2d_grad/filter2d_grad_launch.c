/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/frames_launch.h"

GY_CUDA_KERNEL(filter2d_grad, gy_filter_launch, GANTRY_DTYPE_BIT(GANTRY_F32), "")
