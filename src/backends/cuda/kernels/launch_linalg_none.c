/* SPDX-License-Identifier: Apache-2.0 */
/* In place of cuBLAS, cuSOLVER and cuFFT in a module that was built without their headers. */
#include "backends/cuda/kernels/linalg.h"

#include "base/error.h"

static gantry_status usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    (void)driver;
    return gy_fail(
        err, GANTRY_E_UNSUPPORTED, NULL,
        "this gantry-cuda.so was built without cublas_v2.h, cusolverDn.h and cufft.h, so it has no CUDA version of "
        "%s; build it where they are",
        kernel->name);
}

#define KERNEL(name)
#define NETWORK(name)
#define DEVICE(name)
#define PRODUCTS(name_) const gy_cuda_kernel gy_products_##name_ = { .name = #name_, .usable = usable };
#define LIBRARY(name_)  const gy_cuda_kernel gy_library_##name_ = { .name = #name_, .usable = usable };
#include "kernels/kernels.def"
