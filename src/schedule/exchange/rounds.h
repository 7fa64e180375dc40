/* SPDX-License-Identifier: Apache-2.0 */
/** Pieces of an exchange in rounds, for algorithms of several steps. */
#ifndef GY_SCHEDULE_EXCHANGE_ROUNDS_H
#define GY_SCHEDULE_EXCHANGE_ROUNDS_H

#include "base/vec.h"
#include "schedule/exchange/exchange.h"

typedef struct gy_pieces {
    GY_VEC(gy_exchange_piece) piece;
    GY_VEC(gy_exchange_end) end;
} gy_pieces;
void gy_pieces_free(gy_pieces *pieces);

/* Replaces pieces, of which none writes what another reads, by those of the steps of the op's algorithm, where it has
 * several: the same bytes arrive at the same ends. Pieces that have not one end of each kind a rank stay as they are.
 * false: out of memory. */
bool gy_exchange_rounds(const gantry_schedule *schedule, const gy_op *op, gy_pieces *pieces);

#endif
