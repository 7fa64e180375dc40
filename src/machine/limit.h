/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may have. */
#ifndef GY_MACHINE_LIMIT_H
#define GY_MACHINE_LIMIT_H

#include <stdint.h>

/* Bytes that a control group allows, of those that the process is in, as containers are; UINT64_MAX: any. `root` stands
 * before the paths of /proc and /sys: "" but in tests. */
uint64_t gy_memory_allowed(const char *root);
/* The same, or the memory of the computer, if that is less. */
uint64_t gy_memory_limit(void);

#endif
