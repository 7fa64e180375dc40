/* SPDX-License-Identifier: Apache-2.0 */
#include "packets.h"

#include "control.h"
#include "unit/cuda/suite.h"

static void fetch(int device, void *to, const void *from, size_t bytes)
{
    CUcontext before = NULL, context = NULL;
    ck_assert_int_eq(cuCtxGetCurrent(&before), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(before), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
}

void each_packet(int gpus, void (*see)(void *context, int device, int worker, const gy_resident_packet *packet),
                 void *context)
{
    for (int device = 0; device < gpus; device++) {
        uint64_t first;
        int workers = fakeCudaCooperative(device, &first);
        for (int i = 0; i < workers; i++) {
            gy_resident_worker w;
            fetch(device, &w, (const gy_resident_worker *)(uintptr_t)first + i, sizeof w);
            for (uint32_t k = 0; k < w.packets && w.index == 0; k++) {
                gy_resident_packet packet;
                fetch(device, &packet, w.packet + k, sizeof packet);
                see(context, device, i, &packet);
            }
        }
    }
}

uint32_t workers_of(int device, int worker)
{
    uint64_t first;
    gy_resident_worker w;
    ck_assert_int_gt(fakeCudaCooperative(device, &first), worker);
    fetch(device, &w, (const gy_resident_worker *)(uintptr_t)first + worker, sizeof w);
    return w.workers;
}
