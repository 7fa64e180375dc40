/* SPDX-License-Identifier: Apache-2.0 */
/** NVRTC, the compiler of CUDA C++ at run time: the functions of libnvrtc, opened at run time. */
#ifndef GY_CUDA_NVIDIA_NVRTC_API_H
#define GY_CUDA_NVIDIA_NVRTC_API_H

#include "backends/cuda/nvidia/library.h"
#include "run/usercode/said.h"

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
    gy_said said; /* who hears what it says of code of users; as opened, nobody */
#define GY_X(result, name, parameters) result(*name) parameters;
    GY_NVRTC_FUNCTIONS(GY_X)
#undef GY_X
} gy_nvrtc;

/* E_DEVICE: there is none, or one older than CUDA 11.2. */
gantry_status gy_nvrtc_open(gy_nvrtc *nvrtc, gantry_error *err);

#endif
