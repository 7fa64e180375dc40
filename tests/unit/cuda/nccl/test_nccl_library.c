/* SPDX-License-Identifier: Apache-2.0 */
/* The real library, if this computer has one: it is opened, and every function that is wanted is there. And its header,
 * if it was there when this was compiled: what the back end declares of the ABI is what it says. */
#include "backends/cuda/collective/nccl.h"

#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <nccl.h>
#pragma GCC diagnostic pop

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(ncclSuccess, GY_NCCL_SUCCESS);
SAME(ncclInProgress, GY_NCCL_IN_PROGRESS);
SAME(ncclUnhandledCudaError, 1);
SAME(ncclInt8, GY_NCCL_BYTES);
SAME(ncclInt8, 0);
SAME(ncclUint8, 1);
SAME(ncclInt32, 2);
SAME(ncclUint32, 3);
SAME(ncclInt64, 4);
SAME(ncclUint64, 5);
SAME(ncclFloat16, 6);
SAME(ncclFloat32, 7);
SAME(ncclFloat64, 8);
SAME(ncclBfloat16, 9);
SAME(ncclSum, 0);
SAME(ncclProd, 1);
SAME(ncclMax, 2);
SAME(ncclMin, 3);
SAME(sizeof(ncclUniqueId), sizeof(gy_nccl_id));
SAME(sizeof(ncclResult_t), sizeof(int));
SAME(sizeof(ncclDataType_t), sizeof(int));
SAME(sizeof(ncclRedOp_t), sizeof(int));
SAME(offsetof(ncclConfig_t, blocking), offsetof(gy_nccl_config, blocking));
SAME(NCCL_VERSION(2, 14, 0), 21400);

static int check_config(void)
{
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    gy_nccl_config ours = GY_NCCL_CONFIG;
    if (theirs.magic != ours.magic || ours.size > theirs.size || ours.version > theirs.version) {
        printf("the configuration is not what nccl.h says\n");
        return 1;
    }
    return 0;
}
#else
static int check_config(void)
{
    printf("there was no nccl.h to compare with\n");
    return 0;
}
#endif

int main(void)
{
    char *text = NULL;
    size_t i = 0;
    int version[3];
    if (check_config())
        return 1;
    while (gantry_backend_name(i) && strcmp(gantry_backend_name(i), "cuda") != 0)
        i++;
    if (gantry_backend_describe(i, &text, NULL))
        return 1;
    const char *line = strstr(text, "NCCL: ");
    int known = line ? sscanf(line, "NCCL: libnccl.so.2, version %d.%d.%d", &version[0], &version[1], &version[2]) : 0;
    printf("%.*s\n", line ? (int)strcspn(line, "\n") : 0, line ? line : "");
    int result = known == 3 && version[0] == 2 && version[1] >= 14 ? 0
                 : line && strstr(line, " was not found ")         ? 77
                                                                   : 1;
    gantry_free(text);
    return result;
}
