/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Ops ahead, on its own GPU, of each lane of a collective whose lanes begin apart and meet by counters. A kernel
 * that waits for its peers must not hold back what these peers wait for. So lane r waits for every op of its GPU that
 * the collective comes after on any way: by rows of the sync table, in a stream, and behind collectives that came
 * before. Then all that is left to wait for is work of other GPUs, which needs nothing of this GPU any more.
 *
 * And ops behind: that one lane has ended need not say that those of other GPUs have, as lanes that meet once end by
 * themselves. So an op that comes after such a collective by way of other GPUs waits for its lane on its own GPU, too.
 */
#ifndef GY_CUDA_COLLECTIVE_AHEAD_H
#define GY_CUDA_COLLECTIVE_AHEAD_H

#include "backends/cuda/stream/stream.h"

/* Makes h->ahead; lanes have their streams. It stays NULL where no op asks for such a collective, and where there are
 * too many ops and lanes to look at. */
gantry_status gy_ahead_make(gy_cuda *h, gantry_error *err);

/* So many events has the op if others wait for it: one for each lane where its lanes may end by themselves, else one.
 */
uint32_t gy_ahead_events(const gy_cuda *h, uint32_t op);

#endif
