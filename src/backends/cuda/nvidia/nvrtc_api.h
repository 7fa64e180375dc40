/* SPDX-License-Identifier: Apache-2.0 */
/** NVRTC, the compiler of CUDA C++ at run time: the functions of libnvrtc, opened at run time. */
#ifndef GY_CUDA_NVIDIA_NVRTC_API_H
#define GY_CUDA_NVIDIA_NVRTC_API_H

#include "backends/cuda/nvidia/library.h"
#include "run/usercode/said.h"
#include <stdbool.h>

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
enum { GY_NVRTC_ARCHITECTURES = 64, GY_NVRTC_FILE = 1024 };
typedef struct gy_nvrtc {
    gy_library lib; /* its handle is NULL where it was found and not opened: then there are no functions */
    int major, minor;
    int architectures, architecture[GY_NVRTC_ARCHITECTURES]; /* that it compiles for, 90 for 9.0 */
    char file[GY_NVRTC_FILE];                                /* where it was found; "": nobody says */
    gy_said said;    /* who hears what it says of code of users; as opened, nobody */
    bool looks_only; /* only what was kept is found, and nothing compiled; as opened, no */
#define GY_X(result, name, parameters) result(*name) parameters;
    GY_NVRTC_FUNCTIONS(GY_X)
#undef GY_X
} gy_nvrtc;

/* E_DEVICE: there is none, or one older than CUDA 11.2. */
gantry_status gy_nvrtc_open(gy_nvrtc *nvrtc, gantry_error *err);
/* nvrtc_note.c: the same of what one that was opened said, kept in the cache, as long as that would still be opened and
 * its file is the same; else opens it. Loading NVRTC takes longer than all that is kept of what it compiled. */
gantry_status gy_nvrtc_find(gy_nvrtc *nvrtc, gantry_error *err);

/* Names of the library, up to NULL; the first that is found is opened. */
extern const char *const gy_nvrtc_names[];

static inline bool gy_nvrtc_is_open(const gy_nvrtc *nvrtc)
{
    return nvrtc->lib.handle != NULL;
}

#endif
