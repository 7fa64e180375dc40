/* SPDX-License-Identifier: Apache-2.0 */
/** NCCL, opened at run time: its ABI and the table of its functions. */
#ifndef GY_CUDA_NVIDIA_NCCL_API_H
#define GY_CUDA_NVIDIA_NCCL_API_H

#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/nvidia/library.h"
#include <stdbool.h>
#include <stdint.h>

/* nccl.h, as far as it is used; the same since 2.14. */

typedef struct ncclComm *gy_nccl_comm;
typedef struct gy_nccl_id {
    char bytes[128];
} gy_nccl_id;
/* ncclConfig_t as 2.14 had it: later versions take the rest from `version`. */
typedef struct gy_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
} gy_nccl_config;
enum { GY_NCCL_SUCCESS = 0, GY_NCCL_IN_PROGRESS = 7, GY_NCCL_BYTES = 0 /* ncclInt8 */ };
#define GY_NCCL_CONFIG                                                                                                 \
    {                                                                                                                  \
        sizeof(gy_nccl_config), 0xcafebeef, 21400, 0                                                                   \
    }

#define GY_NCCL_FUNCTIONS(X)                                                                                           \
    X(int, ncclGetVersion, (int *version))                                                                             \
    X(const char *, ncclGetErrorString, (int result))                                                                  \
    X(const char *, ncclGetLastError, (gy_nccl_comm comm))                                                             \
    X(int, ncclGetUniqueId, (gy_nccl_id * id))                                                                         \
    X(int, ncclCommInitRankConfig, (gy_nccl_comm * comm, int ranks, gy_nccl_id id, int rank, gy_nccl_config *config))  \
    X(int, ncclCommGetAsyncError, (gy_nccl_comm comm, int *state))                                                     \
    X(int, ncclCommFinalize, (gy_nccl_comm comm))                                                                      \
    X(int, ncclCommDestroy, (gy_nccl_comm comm))                                                                       \
    X(int, ncclCommAbort, (gy_nccl_comm comm))                                                                         \
    X(int, ncclGroupStart, (void))                                                                                     \
    X(int, ncclGroupEnd, (void))                                                                                       \
    X(int, ncclAllReduce,                                                                                              \
      (const void *from, void *to, size_t count, int type, int op, gy_nccl_comm comm, CUstream stream))                \
    X(int, ncclReduce,                                                                                                 \
      (const void *from, void *to, size_t count, int type, int op, int root, gy_nccl_comm comm, CUstream stream))      \
    X(int, ncclReduceScatter,                                                                                          \
      (const void *from, void *to, size_t count, int type, int op, gy_nccl_comm comm, CUstream stream))                \
    X(int, ncclBroadcast,                                                                                              \
      (const void *from, void *to, size_t count, int type, int root, gy_nccl_comm comm, CUstream stream))              \
    X(int, ncclAllGather, (const void *from, void *to, size_t count, int type, gy_nccl_comm comm, CUstream stream))    \
    X(int, ncclSend, (const void *from, size_t count, int type, int peer, gy_nccl_comm comm, CUstream stream))         \
    X(int, ncclRecv, (void *to, size_t count, int type, int peer, gy_nccl_comm comm, CUstream stream))

typedef struct gy_nccl_api {
    gy_library lib;
    int version[3]; /* 2, 28, 9 */
#define GY_X(type, name, arguments) type(*name) arguments;
    GY_NCCL_FUNCTIONS(GY_X)
#undef GY_X
} gy_nccl_api;

static inline bool gy_nccl_fine(int result)
{
    return result == GY_NCCL_SUCCESS || result == GY_NCCL_IN_PROGRESS;
}

/* E_DEVICE: there is none, or it is older than 2.14. */
gantry_status gy_nccl_load(gy_nccl_api *api, gantry_error *err);

/* "WHAT: NCCL: unhandled cuda error (1): last error". E_DEVICE, native code. */
gantry_status gy_nccl_api_fail(const gy_nccl_api *api, int result, const char *what, gantry_error *err);

#endif
