/* SPDX-License-Identifier: Apache-2.0 */
/* The files that scenarios read; the machine is of two GPUs, which may be the only one. */
#ifndef TESTS_FAULTS_MATERIAL_H
#define TESTS_FAULTS_MATERIAL_H

#include <stdbool.h>

bool material_write(const char *folder, int gpus);

#endif
