/* SPDX-License-Identifier: Apache-2.0 */
/** Memory of a run: slabs, page-locked memory, access of GPUs to each other, and the arrays of the caller. */
#ifndef GY_CUDA_MEMORY_MEMORY_H
#define GY_CUDA_MEMORY_MEMORY_H

#include "backends/cuda/state/device.h"

/* ---- memory.c ---- */

/* Finds the device of each memory; owners of memory that the schedule needs count as used. */
void gy_cuda_memory_owners(gy_cuda *h);
gantry_status gy_cuda_memory_make(gy_cuda *h, gantry_error *err);
void gy_cuda_memory_free(gy_cuda *h);
/* Allocates page-locked host memory that all GPUs can copy from and to. */
gantry_status gy_cuda_pinned(gy_cuda *h, void **to, uint64_t bytes, gantry_error *err);
/* Allocates memory of a GPU. E_CAPACITY: `bytes` for "what" are not there. */
gantry_status gy_cuda_allocate(gy_cuda *h, CUdeviceptr *to, uint32_t device, uint64_t bytes, const char *what,
                               gantry_error *err);
/* Enables peer access between all pairs of GPUs that ops copy between. */
gantry_status gy_cuda_peers_make(gy_cuda *h, gantry_error *err);
/* Enables it between these two, if they can. True: they reach each other, as gy_cuda_reaches has it. */
bool gy_cuda_peers_enable(gy_cuda *h, uint32_t a, uint32_t b);

/* Where bytes are: in memory of a GPU (`device`), or of the host. */
typedef struct gy_location {
    uint32_t device; /* GY_NONE: host */
    bool pinned;     /* host memory that devices can copy from and to on their own */
    CUdeviceptr at;
    char *host;
} gy_location;
/* Where the first byte of a use is in the starts of a turn. */
gy_location gy_cuda_location(const gy_cuda *h, const gy_use *use, uint32_t turn);
static inline gy_location gy_location_at(gy_location p, uint64_t offset)
{
    p.at += offset;
    p.host = p.host ? p.host + offset : NULL;
    return p;
}
static inline bool gy_location_same(gy_location a, gy_location b)
{
    return a.device == b.device && a.at == b.at && a.host == b.host;
}
/* The pointer that a kernel is given. */
static inline void *gy_location_pointer(gy_location p)
{
    return p.device == GY_NONE ? p.host : (void *)(uintptr_t)p.at;
}

/* ---- bind.c: arrays of the caller ---- */

/* Looks at the arrays of a turn that is not in flight, and page-locks them where that pays. *changed: addresses that
 * launches and graphs of the turn have are stale. */
gantry_status gy_cuda_bind(gy_cuda *h, uint32_t turn, bool *changed, gantry_error *err);
void gy_cuda_unbind(gy_cuda *h);

/* ---- locate.c: addresses of the caller ---- */

/* The type of memory at an address: CU_MEMORYTYPE_HOST (page-locked) or CU_MEMORYTYPE_DEVICE; false: CUDA does not know
 * it. */
bool gy_cuda_memory_type(gy_cuda *h, const void *at, unsigned *type, int *ordinal);
/* OK if the bytes are in that memory. Its errors say where they are instead, not which buffer is meant. */
gantry_status gy_cuda_locate(gy_cuda *h, uint32_t memory, const void *at, uint64_t bytes, gantry_error *err);

/* ---- mirror.c: page-locked copies of small arrays of the caller ---- */

gantry_status gy_cuda_mirrors_make(gy_cuda *h, gantry_error *err);
void gy_cuda_mirrors_free(gy_cuda *h);
void gy_cuda_mirrors_in(gy_cuda *h, uint32_t turn);  /* copies inputs to their mirrors, before the start */
void gy_cuda_mirrors_out(gy_cuda *h, uint32_t turn); /* copies results from their mirrors, after it */

#endif
