/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Libraries of CUDA that are opened when they are wanted (NCCL, NVRTC, cuBLAS, ...): looked for in the folders of the
 * environment variable GANTRY_CUDA_LIBRARIES (a list with ":" of absolute paths), then where the loader looks. They
 * stay loaded: several of them do not survive being unloaded.
 */
#ifndef GY_CUDA_NVIDIA_LIBRARY_H
#define GY_CUDA_NVIDIA_LIBRARY_H

#include <gantry/status.h>

typedef struct gy_library {
    void *handle;     /* of dlopen; NULL: not open */
    const char *name; /* the name that was found: one of those asked for */
} gy_library;

/* The first of `names` (ends with NULL; some may be whole paths) that can be opened. E_DEVICE: none, with the loader's
 * reason, or a folder of the list is relative. */
gantry_status gy_library_open(gy_library *library, const char *const *names, gantry_error *err);
/* Of the names of a library in CUDA 13, 12 and 11, those that a driver of this version can run; 0: the driver does not
 * tell, all. */
const char *const *gy_library_names_from(const char *const *names, int driver_version);
/* Writes the address of a function to `to`, a pointer to a function pointer. E_DEVICE: there is none, the library is
 * too old. */
gantry_status gy_library_find(const gy_library *library, const char *symbol, void *to, gantry_error *err);

#endif
