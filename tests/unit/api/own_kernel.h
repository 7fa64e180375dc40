/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel and the CUDA code of a program, for calls that take some and are never run. */
#ifndef TESTS_UNIT_API_OWN_KERNEL_H
#define TESTS_UNIT_API_OWN_KERNEL_H

#include <gantry/gantry.h>

static gantry_status work(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}
static const gantry_kernel_arg own_arg = { .name = "x", .access = GANTRY_READ };
static const gantry_kernel own = {
    .struct_size = sizeof own, .name = "own", .arg = &own_arg, .arg_size = sizeof own_arg, .args = 1, .host = work
};
static const gantry_cuda_code code = {
    .struct_size = sizeof code, .image = "// PTX", .bytes = 6, .grid = { "x.rows" }, .block = { "32" }
};

#endif
