/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A libnccl.so.2 for tests, on the streams of the fake driver: the ABI of NCCL 2.28, declared here once more, so that
 * what the back end declares is held against it.
 *
 * A call of all ranks becomes, per rank, a kernel that begins when its stream has come to it, holds its GPU alone, and
 * ends when the ranks before it in no order have: all begin, then everything is read and combined, then each rank's
 * results are written and its stream goes on, in any order. Sums are added in another order than the host back end's.
 * So work on two communicators that is not in one order on all GPUs comes to a deadlock for some seed.
 *
 * Communicators are never ready at once, and calls in a group may reach the streams only while the caller asks how they
 * are. Misuse ends the program with a line on standard error: ranks on one GPU; a group without all ranks, or with
 * calls that do not match; memory of another device, or that overlaps; a stream of another device; a communicator that
 * is still in progress; blocking communicators; ends while a graph has work of it, where NCCL waits forever.
 *
 * Where FAKE_NCCL_FOLDER names a folder, ranks may be those of several processes, as files there: what a rank sends is
 * written when its kernel begins, and its kernel ends when what it gets is there. Calls that do not match end the
 * program then, and FAKE_NCCL_MUTANT makes such: "skip:2": the second group of calls of rank 1 is left out, "swap:2":
 * the two collectives from the second on are exchanged. FAKE_NCCL_PATIENCE ends what waits for a
 * peer for so many looks. Misuse is told in the file `wrong` there, too, as launchers lose what is said last. A peer
 * whose process is gone is an error of the communicator.
 *
 * Errors, by FAKE_CUDA_FAIL or fakeCudaFail: the name of a function; "ncclInit": making a communicator, later
 * (7: never ends); "ncclLaunch": a group, later; "ncclAsync": the n-th question fails, and all after it; "ncclHang":
 * the kernels of the n-th group never end.
 */
#ifndef FAKE_NCCL_ABI_H
#define FAKE_NCCL_ABI_H

#pragma GCC visibility push(default)
#include "control.h"
#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;
typedef struct ncclConfig_t {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
} ncclConfig_t;
typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress
} ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
typedef enum {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16
} ncclDataType_t;

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, CUstream stream);
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, CUstream stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, CUstream stream);
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           CUstream stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           CUstream stream);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream);

/* Communicators that were neither destroyed nor aborted, and kernels that ended, by abort or not. */
int fakeNcclAlive(void);

#pragma GCC visibility pop

#endif
