/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels of users: CUDA C++ compiled by NVRTC, PTX and cubins that graph files name; images and function handles of
 * programs. Their parameters are the arguments in the order of the manifest, a pointer for a region and a value for a
 * scalar, then what nodes of a variadic kernel give beyond it, then the scratch memory where the kernel asks for some.
 */
#ifndef GY_CUDA_USERCODE_USERCODE_H
#define GY_CUDA_USERCODE_USERCODE_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/nvidia/driver.h"
#include "backends/cuda/usercode/compile.h"
#include "graph/graph.h"
#include "run/usercode/said.h"

/* A kernel in the context of one device. */
typedef struct gy_user_kernel {
    const gy_driver *driver;
    const gy_kernel *kernel;
    CUmodule module, ends;       /* NULL: the function is the program's own; `finish` is in the same module */
    CUfunction function, finish; /* `finish` is launched behind it; NULL: there is none */
    int most_threads, most_block[3], most_grid[3];
    unsigned shared_bytes;
    gy_said said;                      /* who hears what the compiler says */
    struct gy_cuda_recorder *recorder; /* who wants launches as data; NULL: they are made */
    gy_early_launches early;
    gantry_error why; /* of the last launch that failed */
} gy_user_kernel;

/* Has the kernel code for GPUs? */
bool gy_user_kernel_has(const gy_kernel *kernel);
/* Everything that can be known before the code is loaded: code and launch are given, NVRTC is here if it is needed, and
 * the node gives no list of tiles. *found: NVRTC was looked for, and is here. E_UNSUPPORTED, E_DEVICE. */
gantry_status gy_user_kernel_usable(const gantry_graph *graph, const gy_node *node, bool *found, gantry_error *err);

/* Has NVRTC to compile it: a file, a text of the program, or what is printed of formulas? */
bool gy_user_kernel_is_source(const gy_kernel *kernel);
/* Are its two functions compiled apart, so that neither waits for the other: a reduction whose second takes long? */
bool gy_user_kernel_is_apart(const gy_kernel *kernel);
/* The code of one of these, which is not loaded; as gy_nvrtc_compile. `folder` is the graph's. Of one whose functions
 * are apart: the second function if it `ends`, else the first. */
gantry_status gy_user_kernel_compile(gy_code *code, const gy_nvrtc *nvrtc, const gy_kernel *kernel, bool ends,
                                     int capability, const char *folder, gantry_error *err);

/* ahead.c: kernels of a run before they are opened. What is not kept of them is compiled by threads between these two
 * and kept; the code of several devices of one kind once. NULL: there is nothing to do. Kernels, driver and folder live
 * until the second, which waits. No error is told: opening meets it again, and tells the first in the order of the run.
 * Who hears what compilers say hears it when a kernel is opened, so such code is left alone. */
typedef struct gy_user_wanted {
    const gy_kernel *kernel;
    CUdevice device;
} gy_user_wanted;
typedef GY_VEC(gy_user_wanted) gy_user_wants;
struct gy_user_ahead;
struct gy_user_ahead *gy_user_kernels_begin(const gy_user_wants *wants, const gy_driver *driver, const char *folder,
                                            gy_said said);
void gy_user_kernels_end(struct gy_user_ahead *ahead);

/* Compiles, loads, finds the function; the device's context is current. E_GRAPH: does not compile or has no such
 * function; E_DEVICE: the driver does not take it. */
gantry_status gy_user_kernel_open(gy_user_kernel **out, const gy_driver *driver, CUdevice device, int ordinal,
                                  const gantry_graph *graph, const gy_kernel *kernel, gy_said said, gantry_error *err);
void gy_user_kernel_close(gy_user_kernel *kernel);

/* userlaunch.c: a launch of it, what gy_user_launch finds as `user`; made in the arena. Extents, scalars and parameters
 * are checked with the values at hand. E_GRAPH: what the device or the function cannot do. */
struct gy_user_call;
gantry_status gy_user_call_make(struct gy_user_call **out, gy_arena *arena, gy_user_kernel *kernel,
                                const gantry_launch *launch, gantry_error *err);
/* Queues it: a gantry_kernel_fn. Where it fails the kernel says why. */
gantry_status gy_user_launch(const gantry_launch *launch);
/* As `early` of gy_cuda_kernel, for a gy_user_kernel. Formulas may come early; how code that was written by hand begins
 * nobody knows. */
bool gy_user_early(void *kernel, gy_early which);

#endif
