/* SPDX-License-Identifier: Apache-2.0 */
/* Factors on CPUs, in place: q holds the matrix first. A word that is not 0 is what LAPACK says of it. */
#ifndef GY_KERNELS_QR_H
#define GY_KERNELS_QR_H

#include "kernels/linalg.h"

enum { GY_QR_ROOM = 2 }; /* elements of room for each column */

/* All of it at once, by reflections. The diagonal of r is not negative. */
int32_t gy_qr_reflect(const gy_linalg *table, gantry_dtype dtype, gy_matrix q, gy_matrix r, void *room);
/* In blocks of rows where there are many. The word is left in the status of the launch. */
gantry_status gy_qr_factor(const gantry_launch *l, gantry_dtype dtype, gy_matrix q, gy_matrix r);

#endif
