/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The page (docs/viewer.md): one file with a viewer, which is the same for every schedule, and what it shows as columns
 * of numbers. Inside this room: how the columns are written.
 *
 * All of the data is one sequence of bytes, written as base64 (RFC 4648). A number is a varint: seven bits a byte, the
 * low ones first, the high bit set on all but the last byte (LEB128). A signed number is zigzag-coded before: 0, -1, 1,
 * -2 become 0, 1, 2, 3. A text is its number of bytes and UTF-8. A list of names is front-coded: each is the number of
 * leading bytes that it shares with the one before and a text, the rest. A column is a number for each item, and where
 * "from the one before" is said, a signed difference to that of the item before (the first: to 0). A sparse column has
 * behind each 0 how many more of them follow, which are not written. In this order:
 *
 *   text     "gantry 2"
 *   number   parts; then for each part
 *     text   title
 *     number 0: a schedule follows; k + 1: times of part k follow
 *     a schedule:
 *       texts    graph, machine, policy
 *       numbers  makespan, bound (ps)
 *       memories number of; each: text id, numbers capacity, slab (bytes; that of memory 0 with the staging behind it)
 *       devices  number of; each: text id, number memory
 *       lanes    number of; each: number device, number kind (gy_lane_kind), text
 *       groups   number of; each: texts label, fill, line (colours)
 *       kinds    number of; each: text (gy_op_kind)
 *       reasons  number of; each: text (gy_reason)
 *       nodes    number of; names
 *       values   number of; names; columns generation, rows
 *       regions  number of; names (gy_value_rows_text); columns value from the one before, sparse; first row from the
 *                one before; number of rows from the one before, sparse. Rows that instances have or ops use, each once
 *       instances number of; columns region from the one before; memory; space + 4 * role; bytes from the one before,
 *                sparse; offset from the one before (staging: behind the slab of memory 0)
 *       ops      number of; columns
 *                kind + 8 * repeat + 16 * joined + 32 * critical
 *                group
 *                node + 1 (0: none) from the one before
 *                iteration, sparse
 *                word + 1 of the collective or reduction in `words` (0: none), sparse
 *                2 * lane; of an op of none or several 2 * their number + 1 and, for each, the lane
 *                start, from the end of the op before in its first lane (of a lane's first: from 0), signed
 *                end - start
 *                duration when alone - (end - start), signed and sparse
 *                bytes (of what is copied or exchanged)
 *                number of uses and, for each, 16 * (instance from the use before, zigzag-coded) + 2 * mode + whole;
 *                where whole is 0 (not all rows of the instance): region
 *                number of waits for ops of the same start and, for each, 4 * (positions back) + reason (gy_reason)
 *       words    number of; each: text
 *     times:     columns of as many items as there are ops: start from the one before (ns), duration (ns)
 *     number 1: a match follows: column of the op of part 0 that this one corresponds to + 1 (0: none) from the one
 * before; 0: none follows
 */
#ifndef GY_EXPORT_PAGE_H
#define GY_EXPORT_PAGE_H

#include "export/export.h"

/* Bytes under construction; like gy_text, `failed` is looked at once, at the end. */
typedef struct gy_columns {
    GY_VEC(uint8_t) to;
    bool failed;
} gy_columns;

void gy_columns_number(gy_columns *b, uint64_t number);
uint64_t gy_columns_zigzag(int64_t number);
void gy_columns_signed(gy_columns *b, int64_t number);
void gy_columns_text(gy_columns *b, const char *text); /* NULL: empty. Made clean as gy_export_name does */
/* The next name of a list; `before` holds the one before, and then this one. */
void gy_columns_name(gy_columns *b, gy_text *before, const char *name);
void gy_columns_base64(gy_text *to, const gy_columns *b);
void gy_columns_free(gy_columns *b);

/* A start as it was measured: nanoseconds, for each op. */
typedef struct gy_page_time {
    int64_t start, end;
} gy_page_time;

/* Reads the times of all ops from the text of gantry_run_trace; `time` has room for them. E_INVALID. */
gantry_status gy_page_times(gy_page_time *time, const gantry_schedule *s, size_t phase, const char *trace,
                            size_t length, gantry_error *err);
/* The schedule of a phase, or the schedule itself where it is not in phases. E_INVALID: there is no such phase. */
gantry_status gy_page_phase(const gantry_schedule **s, const gantry_schedule *schedule, size_t phase,
                            gantry_error *err);

/* One of the timelines of a page, from top to bottom. */
typedef struct gy_page_part {
    const char *title;
    const gy_view *view;
    const gy_page_time *time; /* NULL: as predicted; else the view is that of the part before */
    const uint32_t *match;    /* per op: that of part 0 which does the same, or GY_NONE. NULL: there is no comparison */
} gy_page_part;

void gy_export_page(gy_text *to, const gy_page_part *part, size_t parts);

/* Lanes, ops and whatever else the list above has for a schedule. */
void gy_page_schedule(gy_columns *b, const gy_view *view);

#endif
