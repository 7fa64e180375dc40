/* SPDX-License-Identifier: Apache-2.0 */
/**
 * NVRTC, the compiler of CUDA C++ at run time: libnvrtc, opened when a graph brings a .cu file. What it makes is kept
 * (base/cache.h) under a name made from the source, the files that it includes from its own folder and the graph's, the
 * architecture, the options and NVRTC's version.
 */
#ifndef GY_CUDA_USERCODE_COMPILE_H
#define GY_CUDA_USERCODE_COMPILE_H

#include "backends/cuda/nvidia/library.h"

/* The functions of nvrtc.h that are used: results are 0 or a code, programs are opaque. */
#define GY_NVRTC_FUNCTIONS(X)                                                                                          \
    X(const char *, nvrtcGetErrorString, (int))                                                                        \
    X(int, nvrtcVersion, (int *, int *))                                                                               \
    X(int, nvrtcGetNumSupportedArchs, (int *))                                                                         \
    X(int, nvrtcGetSupportedArchs, (int *))                                                                            \
    X(int, nvrtcCreateProgram,                                                                                         \
      (struct _nvrtcProgram **, const char *, const char *, int, const char *const *, const char *const *))            \
    X(int, nvrtcDestroyProgram, (struct _nvrtcProgram **))                                                             \
    X(int, nvrtcCompileProgram, (struct _nvrtcProgram *, int, const char *const *))                                    \
    X(int, nvrtcGetPTXSize, (struct _nvrtcProgram *, size_t *))                                                        \
    X(int, nvrtcGetPTX, (struct _nvrtcProgram *, char *))                                                              \
    X(int, nvrtcGetCUBINSize, (struct _nvrtcProgram *, size_t *))                                                      \
    X(int, nvrtcGetCUBIN, (struct _nvrtcProgram *, char *))                                                            \
    X(int, nvrtcGetProgramLogSize, (struct _nvrtcProgram *, size_t *))                                                 \
    X(int, nvrtcGetProgramLog, (struct _nvrtcProgram *, char *))

struct _nvrtcProgram;
typedef struct gy_nvrtc {
    gy_library lib;
    int major, minor;
#define GY_X(result, name, parameters) result(*name) parameters;
    GY_NVRTC_FUNCTIONS(GY_X)
#undef GY_X
} gy_nvrtc;

/* E_DEVICE: there is none, or one older than CUDA 11.2. */
gantry_status gy_nvrtc_open(gy_nvrtc *nvrtc, gantry_error *err);

/* Code as the driver loads it, with a 0 behind it. Free `at` with gy_free. */
typedef struct gy_code {
    char *at;
    size_t bytes;
} gy_code;

/* Compiles a file for devices of a compute capability (90 for 9.0), or finds what was kept: a cubin, or PTX where NVRTC
 * does not know the architecture yet. `folder` is the graph's, in which includes are looked for too. E_GRAPH: it does
 * not compile, with the first lines that NVRTC says; E_IO: the file or the cache; E_UNSUPPORTED: the devices are too
 * old for this NVRTC. */
gantry_status gy_nvrtc_compile(gy_code *code, const gy_nvrtc *nvrtc, const char *path, const char *folder,
                               int capability, gantry_error *err);

#endif
