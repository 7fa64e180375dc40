/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of NCCL that are too old: by what they have, or, with ALL_FUNCTIONS, by what they say. */
#define FUNCTION(name)                                                                                                 \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 3;                                                                                                      \
    }

int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = 21003;
    return 0;
}
FUNCTION(ncclGetErrorString)
FUNCTION(ncclGetLastError)
FUNCTION(ncclGetUniqueId)
#ifdef ALL_FUNCTIONS
FUNCTION(ncclCommInitRankConfig)
FUNCTION(ncclCommGetAsyncError)
FUNCTION(ncclCommFinalize)
FUNCTION(ncclCommDestroy)
FUNCTION(ncclCommAbort)
FUNCTION(ncclGroupStart)
FUNCTION(ncclGroupEnd)
FUNCTION(ncclAllReduce)
FUNCTION(ncclReduce)
FUNCTION(ncclReduceScatter)
FUNCTION(ncclBroadcast)
FUNCTION(ncclAllGather)
FUNCTION(ncclSend)
FUNCTION(ncclRecv)
#endif
