/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The bytes that a collective op moves, cut into pieces: all bytes of a piece come from the same reads of the op and go
 * to the same writes. Back ends move the pieces; nothing here does.
 */
#ifndef GY_SCHEDULE_EXCHANGE_EXCHANGE_H
#define GY_SCHEDULE_EXCHANGE_EXCHANGE_H

#include "schedule/schedule.h"

/* Every target of the piece receives its sources, combined in this order; a single source is only copied. */
typedef struct gy_exchange_piece {
    uint32_t source, sources; /* range of gy_exchange.end */
    uint32_t target, targets; /* range of gy_exchange.end */
    uint64_t bytes;
    uint32_t round; /* it begins when all pieces of earlier rounds have ended */
} gy_exchange_piece;

/* An end of a piece is a place within a use of the op. */
typedef struct gy_exchange_end {
    uint32_t use; /* of the op, from 0 */
    uint64_t offset;
} gy_exchange_end;

typedef struct gy_exchange {
    gy_exchange_piece *piece; /* by rounds */
    gy_exchange_end *end;
    uint32_t pieces, ends, most_sources; /* most_sources: of a piece */
    uint32_t rounds;                     /* 1: all pieces may go at the same time */
    uint64_t bytes;                      /* of all pieces */
    gantry_dtype dtype;
    gantry_access reduce; /* 0 where nothing is combined */
    bool staged; /* a target overlaps a source that is read later: all results are built before one is stored */
} gy_exchange;

/* Everything is allocated in the arena. E_SCHEDULE: an inserted collective writes rows that no source has. */
gantry_status gy_exchange_make(gy_exchange **made, gy_arena *arena, const gantry_schedule *schedule,
                               const gantry_graph *graph, uint32_t op, gantry_error *err);
/* The same without the steps of the op's algorithm: in one round, each target gets all of its sources. */
gantry_status gy_exchange_make_whole(gy_exchange **made, gy_arena *arena, const gantry_schedule *schedule,
                                     const gantry_graph *graph, uint32_t op, gantry_error *err);

#endif
