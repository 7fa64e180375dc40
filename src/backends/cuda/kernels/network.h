/* SPDX-License-Identifier: Apache-2.0 */
/** Kernels by cuDNN share the library, a handle of it, and the own kernel that does what it does not. */
#ifndef GY_CUDA_KERNELS_NETWORK_H
#define GY_CUDA_KERNELS_NETWORK_H

#include "backends/cuda/kernels/plain.h"
#include "backends/cuda/nvidia/cudnn_api.h"

typedef struct gy_network {
    gy_cudnn api;
    void *cudnn;
    const gy_cuda_kernel *own;
    void *plain; /* of the own kernel */
    int driver_version;
    char why[240]; /* the last call failed */
} gy_network;

/* The most memory that cuDNN computes in. The workspace is the launch's scratch, which lanes do not share. */
enum { GY_NETWORK_MOST_BYTES = 512 << 20 };

/* `usable` of a kernel by cuDNN. */
gantry_status gy_network_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err);
/* own: what does all that cuDNN does not, with `prepare` and `why`. */
gantry_status gy_network_open(gy_network *n, const gy_cuda_kernel *own, const gy_driver *driver, gantry_error *err);
void gy_network_close(gy_network *n);
/* The failure of a call, or of a launch of the own kernel. */
const char *gy_network_why(const gy_network *n);

/* A call's status. E_DEVICE: `why` says so. */
gantry_status gy_network_check(gy_network *n, int status, const char *call);
#define GY_NETWORK_CALL(n, name, ...) gy_network_check(n, (n)->api.name(__VA_ARGS__), #name)

/* The launch as the own kernel sees it. */
gantry_launch gy_network_plain(const gy_network *n, const gantry_launch *l);
/* cuDNN's number of f32, f16 or bf16. */
int gy_network_type(gantry_dtype dtype);

#endif
