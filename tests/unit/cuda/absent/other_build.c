/* SPDX-License-Identifier: Apache-2.0 */
/* A module that was built from other headers. Calling it ends the program: only its build id may be looked at. */
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const char gantry_cuda_build_id[];
const char gantry_cuda_build_id[] = "0123456789abcdef";

EXPORTED const void *gantry_cuda_module(void);
const void *gantry_cuda_module(void)
{
    abort();
}
