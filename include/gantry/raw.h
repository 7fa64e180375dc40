/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/raw.h
 * @brief The same work by hand: what the hardware does without Gantry, timed in the same program, to compare with.
 *
 * Take samples in turn, one of Gantry's and one of these, and compare medians: then what disturbs one disturbs both.
 */
#ifndef GANTRY_RAW_H
#define GANTRY_RAW_H

#include <gantry/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_raw gantry_raw;

typedef struct gantry_raw_options {
    size_t struct_size;
    const char *shape;  /* replay, build: "chain", "wide" or "stencil"; nccl: "all_reduce", "broadcast", ... */
    const char *kernel; /* kernel: its name */
    uint64_t bytes;     /* copies: of each; kernel: of each large argument; nccl: as in machine files */
    int64_t nodes;      /* replay, build: tiny kernels in all */
    int32_t copies;     /* on each stream, one after another; nccl: collectives; at least 1 */
    int32_t devices;    /* the first so many GPUs of the machine; 0: all */
    /* upload, fetch, both: an array for each of these GPUs, to be copied from and to; borrowed until gantry_raw_free,
     * and page-locked by whoever gives them. `bytes` go up from its beginning, and as many come back `apart` bytes
     * behind. NULL: page-locked memory of its own. Where memory lies may count for more than who copies. */
    void *const *host;
    uint64_t apart; /* with `host`; 0: `bytes` */
} gantry_raw_options;
#define GANTRY_RAW_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(gantry_raw_options), "chain", NULL, 0, 1, 1, 0, NULL, 0                                                 \
    }

/**
 * Prepares work by the means of a back end ("cuda"). `what`:
 *   "peer"     copies from the first GPU to the second
 *   "upload"   copies from page-locked host memory to the GPUs, all at once; "fetch" the other way; "both" both at once
 *   "within"   copies within the memory of the first GPU
 *   "kernel"   a kernel of the library on the first GPU
 *   "nccl"     collectives of NCCL one after another, in a graph that was captured by hand; f32, sums
 *   "replay"   launching a graph of tiny kernels that was captured by hand
 *   "build"    capturing and instantiating that graph
 * E_DEVICE: no such back end or device here. E_UNSUPPORTED: the devices cannot do this. E_INVALID: no such work.
 */
GANTRY_MUST_USE gantry_status gantry_raw_new(gantry_raw **raw, const char *backend, const char *what,
                                             const gantry_machine *machine, const gantry_raw_options *options,
                                             gantry_error *err);
/** Does it once and waits. `*us`: from before the first call until the end is seen, as of a start that is waited for;
 *  of "within" and "kernel" the device's time alone. `*bytes`: moved, over links or within memory (read and written);
 *  0 where that is not the point. Either may be NULL. */
GANTRY_MUST_USE gantry_status gantry_raw_time(gantry_raw *raw, double *us, double *bytes, gantry_error *err);
GANTRY_API void gantry_raw_free(gantry_raw *raw);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_RAW_H */
