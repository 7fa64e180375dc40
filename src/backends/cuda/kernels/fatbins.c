/* SPDX-License-Identifier: Apache-2.0 */
/* The images that nvcc made, as bytes of this module. GY_FATBIN_FOLDER is where they are. */
#define IMAGE_OF(name)                                                                                                 \
    __asm__(".section .rodata\n"                                                                                       \
            ".balign 64\n"                                                                                             \
            ".globl gy_fatbin_" name "\n"                                                                              \
            ".hidden gy_fatbin_" name "\n"                                                                             \
            "gy_fatbin_" name ":\n"                                                                                    \
            ".incbin \"" GY_FATBIN_FOLDER "/" name ".fatbin\"\n"                                                       \
            ".previous\n");
#define KERNEL(name) IMAGE_OF(#name)
#define DEVICE(name) KERNEL(name)
#include "kernels/kernels.def"
IMAGE_OF("resident_open")

typedef int gy_not_empty;
