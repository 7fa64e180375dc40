/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of workers, as they lie in the memory of emulated GPUs. */
#ifndef TESTS_UNIT_CUDA_RESIDENT_PACKETS_H
#define TESTS_UNIT_CUDA_RESIDENT_PACKETS_H

#include "kernels/resident/resident.h"

/* Each packet of the start that was given to the GPUs last, which has ended; of the worker that leads its lane. Helpers
 * have its packets. */
void each_packet(int gpus, void (*see)(void *context, int device, int worker, const gy_resident_packet *packet),
                 void *context);

/* How many workers the lane has that such a packet is of. */
uint32_t workers_of(int device, int worker);

#endif
