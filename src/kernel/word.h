/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a kernel for what a launch has left in its status word. */
#ifndef GY_KERNEL_WORD_H
#define GY_KERNEL_WORD_H

#include <gantry/kernel.h>

/* Why an op failed whose launch left `word` in its status word, with what the summary of its kernel says of that, and
 * numbers of the launch for their names in braces. NULL: a function without a manifest. */
void gy_launch_word(const gantry_kernel *manifest, const gantry_launch *launch, int32_t word, char *text, size_t size);

#endif
