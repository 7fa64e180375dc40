/* SPDX-License-Identifier: Apache-2.0 */
/**
 * CUDA C++ of users, compiled by NVRTC when a graph brings a .cu file. The code that it makes is kept
 * (base/cache.h) under a name made from the source, the files that it includes from its own folder and the graph's, the
 * architecture, the options and NVRTC's version. It is looked for first: an NVRTC that was found and not opened is
 * opened where something has to be compiled.
 */
#ifndef GY_CUDA_USERCODE_COMPILE_H
#define GY_CUDA_USERCODE_COMPILE_H

#include "backends/cuda/nvidia/nvrtc_api.h"
#include "kernel/registry.h"

/* Code as the driver loads it, with a 0 behind it. Free `at` with gy_free. */
typedef struct gy_code {
    char *at;
    size_t bytes;
} gy_code;

/* Compiles a file for devices of a compute capability (90 for 9.0), or finds what was kept: a cubin, or PTX where NVRTC
 * does not know the architecture yet. `folder` is the graph's, in which includes are looked for too; `build` has more
 * folders, and macros (NULL: none). E_GRAPH: it does not compile, with the first lines that NVRTC says; E_IO: the file
 * or the cache; E_UNSUPPORTED: the devices are too old for this NVRTC. An NVRTC that only looks finds NULL where code
 * is not kept, and is E_UNSUPPORTED where it would not be. */
gantry_status gy_nvrtc_compile(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                               const gy_code_build *build, int capability, gantry_error *err);
/* The same of a file between two texts, to be linked as gy_nvrtc_compile_to_link says. */
gantry_status gy_nvrtc_compile_between(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                                       const gy_code_build *build, const char *before, const char *after,
                                       int capability, gantry_error *err);
/* The same of a text that includes nothing; `name` stands for it in messages. */
gantry_status gy_nvrtc_compile_text(gy_code *code, const gy_nvrtc *nvrtc, const char *name, const char *text,
                                    int capability, gantry_error *err);
/* The same, to be linked to other code whose functions call what is in it, and have 128 registers. */
gantry_status gy_nvrtc_compile_to_link(gy_code *code, const gy_nvrtc *nvrtc, const char *name, const char *text,
                                       int capability, gantry_error *err);

#endif
