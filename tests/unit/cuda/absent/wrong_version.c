/* SPDX-License-Identifier: Apache-2.0 */
/* A module of another version. */
#include <stdint.h>

const void *gantry_cuda_module(uint32_t version);

__attribute__((visibility("default"))) const void *gantry_cuda_module(uint32_t version)
{
    static const uint32_t table[] = { 7 };
    (void)version;
    return table;
}
