/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The CUDA versions of the library's kernels: a table by name. The module gantry-cuda.so brings the one of
 * launchers.c; a test may link another.
 */
#ifndef GY_CUDA_KERNELS_KERNELS_H
#define GY_CUDA_KERNELS_KERNELS_H

#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/nvidia/early.h"
#include "kernels/combine/meeting.h"
#include "kernels/push/push.h"
#include <gantry/kernel.h>
#include <stdint.h>

/* The kernel that combines and stores for collectives (combine.c) is in the table by a name that no manifest can have.
 * Its arguments are one part after the other: sources (access `read`), then targets, all of as many rows. Targets get
 * what gy_reduce would give them (run/reduce.h) by the reduction that is their access; `write`: the one source. A
 * target may be one of the sources of its part, element for element. */
#define GY_CUDA_COMBINE "(combine)"
/* `user` of a launch that meets those of other GPUs, which are launched with as many blocks: `columns` for each of
 * `parts` parts, no less than its own arguments have, and no more in all than `room` says. NULL: it does not. */
typedef struct gy_cuda_meeting {
    gy_combine_meeting with;
    uint32_t columns, parts;
} gy_cuda_meeting;
enum { GY_CUDA_SOURCES = 64, GY_CUDA_TARGETS = 64, GY_CUDA_ENDS = 128, GY_CUDA_PARTS = 64 }; /* of a part; of all */
/* One of its arguments: so many bytes; those that are only moved have no other type than u8. */
static inline gantry_arg gy_combine_arg(gantry_access access, gantry_dtype dtype, CUdeviceptr at, uint64_t bytes)
{
    size_t size = gantry_dtype_size(dtype);
    return (gantry_arg){ .name = "",
                         .dtype = dtype,
                         .access = access,
                         .rows = (int64_t)(bytes / size),
                         .row_bytes = (int64_t)size,
                         .data = (void *)(uintptr_t)at };
}

/* The kernel of collectives whose GPUs send what they give, and meet once (kernels/push), is in the table by such a
 * name, too. Its one argument says by which reduction parts are combined, `write` if they are only moved, and their
 * type, u8 if so; `user` of its launches is what GPUs that meet have of it, with the same `columns` and `parts`. */
#define GY_CUDA_PUSH "(push)"
typedef struct gy_cuda_push {
    gy_push with;
    uint32_t columns, parts; /* columns: blocks of each part; no more in all than `room` says */
    gy_push_part part[GY_PUSH_PARTS];
} gy_cuda_push;

/* The kernel that sets the condition of a conditional node is in the table by such a name, too. Its arguments are the
 * flag, one element, and the handle of the condition, a number. */
#define GY_CUDA_WHEN "(when)"

/* The kernel of gates, which sets words of other GPUs or waits for words (kernels/gate), is in the table by such a
 * name, too. Its one argument is a word, u64: access `write`, it is set; `readwrite`, it is waited for. Its other
 * functions are nodes of graphs alone. */
#define GY_CUDA_GATE "(gate)"

/* The kernel of fills is in the table by such a name, too (kernels/fill). Its one argument is the elements; `user` of
 * its launches is a gy_cuda_fill. They get what gy_fill_rows gives them (run/fill.h), to the bit, of what
 * gy_init_is_for_gpus (graph/contents.h) but a value, which is a memset. */
#define GY_CUDA_FILL "(fill)"
/* Where elements that follow each other in memory are in the whole array: element 0 is number `first`. Lines of
 * extent[2] elements begin step[2] apart there, groups of extent[1] lines step[1], of extent[0] such groups step[0]. */
typedef struct gy_fill_lines {
    int64_t first, extent[3], step[3];
} gy_fill_lines;
typedef struct gy_cuda_fill {
    const struct gy_init *what;
    gy_fill_lines at;
    uint64_t order; /* of a matrix: its columns */
} gy_cuda_fill;

/* The code of resident kernels (kernels/resident) is in the table by such a name, too. Its `data` and its handle: */
#define GY_CUDA_RESIDENT "(resident)"
typedef struct gy_resident_image {
    const void *code;
    const unsigned char *open; /* the same as a fat binary that is to be linked with functions that workers call */
    uint32_t shared;           /* bytes of shared memory that a block has beside its own */
} gy_resident_image;
typedef struct gy_cuda_resident {
    const gy_driver *driver;
    CUmodule module;
    CUfunction function;
    uint32_t shared;
    int processors, places; /* multiprocessors of the GPU; blocks that one of them has room for */
} gy_cuda_resident;

/* Whoever wants launches as data: `word` has the parameters of a call of the function, one each. */
typedef struct gy_cuda_recorder {
    gantry_status (*add)(struct gy_cuda_recorder *to, const char *name, const unsigned grid[3], const unsigned block[3],
                         const uint64_t *word, uint32_t words);
    bool is_second; /* the call is of the function of formulas that ends the work, or does all of it */
} gy_cuda_recorder;
enum { GY_CUDA_RECORDED_WORDS = 16 }; /* more parameters of the library, or longer ones, are not written down */

/* Launches of alike nodes (graph/alike.h) on one stream, with one handle: only addresses and status words differ. */
typedef struct gy_cuda_batch {
    const gantry_launch *const *launch;
    uint32_t count;
    CUdeviceptr data; /* in memory of the device: `data` of argument a of launch i, a * count + i pointers from here */
} gy_cuda_batch;

/* The launch with another handle: that of the kernel that one of a library falls back on, or is made of. */
static inline gantry_launch gy_launch_with(const gantry_launch *l, void *handle)
{
    gantry_launch other = *l;
    other.handle = handle;
    return other;
}

/* Initialise members by name: those at the end are optional. */
typedef struct gy_cuda_kernel {
    const char *name; /* of the manifest */
    /* Queues the work on the launch's stream, whose context is current. */
    gantry_kernel_fn launch;
    /* Makes the `handle` of launches, once per device with its context current; NULL: there is none. `data` is the
     * table's. */
    gantry_status (*open)(void **handle, const struct gy_cuda_kernel *kernel, const gy_driver *driver,
                          gantry_error *err);
    void (*close)(void *handle);
    const void *data;
    /* OK if everything that it needs is on this computer; called before anything is opened. E_UNSUPPORTED: what is
     * missing, and where to put it. */
    gantry_status (*usable)(const struct gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err);
    /* Called for each launch when a run is opened, in its context, with all there is but addresses. May raise
     * *scratch, the bytes that the launch is given as `scratch`. */
    gantry_status (*prepare)(const gantry_launch *launch, uint64_t *scratch, gantry_error *err);
    /* Queues the work of all launches of a batch, in any order, by fewer calls than launches. `first` is launch 0 with
     * the handle that `open` made. Without it they are launched one after the other. */
    gantry_status (*launch_batch)(const gantry_launch *first, const gy_cuda_batch *batch);
    /* Does `launch_batch` do better than one after the other with the handle that `open` made? NULL: wherever it is. */
    bool (*batches)(const void *handle);
    /* Does a first call with the handle that `open` made load code, for so long that it is made beforehand? Such calls
     * are then made under a capture, in another thread. NULL: no. */
    bool (*loads)(const void *handle);
    /* For kernels that queue nothing but functions that begin with gy_begin: how the launches with the handle that
     * come next may be made. True if one was made since it was last called. */
    bool (*early)(void *handle, gy_early which);
    /* For kernels that launch nothing but functions of their own image: launches with the handle are not made, but
     * written down, until the recorder is NULL again. E_UNSUPPORTED of a launch: it cannot be. */
    void (*record)(void *handle, gy_cuda_recorder *to);
    /* Do launches with the handle that `open` made read their status word, or write it where all is well? Then the word
     * lies in memory of the GPU and is fetched at the end of each start. Others write theirs, which lies in host
     * memory, once they fail. NULL: no. */
    bool (*keeps_word)(const void *handle);
    /* Of GY_CUDA_COMBINE and GY_CUDA_PUSH: for how many blocks of such a launch the GPU has room at once, if it may
     * meet others; 0: the driver does not tell. NULL: none may. */
    uint32_t (*room)(const gantry_launch *launch);
    /* Of GY_CUDA_GATE: a function of it (kernels/gate/gate.h), for a node that is added to a graph. */
    CUfunction (*function)(const void *handle, int which);
    /* One line on why the last launch with this handle failed, borrowed until the next; NULL: nothing more is known. */
    const char *(*why)(const void *handle);
} gy_cuda_kernel;

/* The table of the module; the program or library that links the module defines it. */
const gy_cuda_kernel *const *gy_cuda_kernels(size_t *count);
/* NULL: there is no CUDA version of that kernel. */
const gy_cuda_kernel *gy_cuda_kernel_find(const char *name);

#endif
