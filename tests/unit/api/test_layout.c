/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of docs/abi.md on structs and enums, for programs that were compiled with version 0.1, on computers with
 * 64 bits. A line here changes with the major version only: what was compiled before would read something else. */
#include <gantry/gantry.h>
#include <stddef.h>

#define HOLDS(condition)           _Static_assert(condition, "the ABI of 0.1: " #condition)
#define FIELD(type, field, offset) HOLDS(offsetof(type, field) == (offset))
#define SIZE(type, bytes)          HOLDS(sizeof(type) == (bytes))
#define GROWS(type, last, offset)                                                                                      \
    FIELD(type, struct_size, 0);                                                                                       \
    FIELD(type, last, offset)

/* ---- of a fixed size ---- */

SIZE(gantry_buffer, 8);
FIELD(gantry_buffer, id, 0);
FIELD(gantry_buffer, graph, 4);
SIZE(gantry_node, 8);
FIELD(gantry_node, id, 0);
FIELD(gantry_node, graph, 4);
SIZE(gantry_region, 64);
FIELD(gantry_region, buffer, 0);
FIELD(gantry_region, kind, 8);
FIELD(gantry_region, ndim, 12);
FIELD(gantry_region, first, 16);
FIELD(gantry_region, last, 24);
FIELD(gantry_region, first2, 32);
FIELD(gantry_region, last2, 40);
FIELD(gantry_region, before, 48);
FIELD(gantry_region, after, 56);
SIZE(gantry_error, 784);
FIELD(gantry_error, status, 0);
FIELD(gantry_error, line, 4);
FIELD(gantry_error, column, 8);
FIELD(gantry_error, device, 12);
FIELD(gantry_error, native, 16);
FIELD(gantry_error, file, 32);
FIELD(gantry_error, where, 152);
FIELD(gantry_error, text, 272);

/* ---- may grow at the end: the last field that each had in 0.1 ---- */

GROWS(gantry_load_options, strategy, 64);
GROWS(gantry_use_options, reserved, 52);
GROWS(gantry_contents, exact, 40);
GROWS(gantry_import_options, edge_cost, 40);
GROWS(gantry_train_options, loss_scale, 120);
GROWS(gantry_strategy, zero, 20);
GROWS(gantry_schedule_options, unroll, 88);
GROWS(gantry_drawing_options, schedule, 32);
GROWS(gantry_run_options, apart, 44);
GROWS(gantry_resumed, passed_over, 32);
GROWS(gantry_kernel, close, 96);
GROWS(gantry_cuda_code, defaults, 112);
GROWS(gantry_launch, handle, 96);
GROWS(gantry_buffer_info, equal_nan, 88);
GROWS(gantry_device_info, signal_us, 56);
GROWS(gantry_memory_info, reserved, 24);
GROWS(gantry_schedule_summary, bytes_needed, 112);
GROWS(gantry_join_options, gbs, 16);
GROWS(gantry_rank_info, memory_bytes, 48);
GROWS(gantry_phase_info, hand_over_us, 48);
GROWS(gantry_run_info, formulas_why, 64);
GROWS(gantry_at_work, device, 24);
GROWS(gantry_rebalance, reserved, 52);
FIELD(gantry_kernel_arg, summary, 48);
FIELD(gantry_arg, items, 120);

/* ---- numbers ---- */

HOLDS(GANTRY_OK == 0 && GANTRY_E_NOMEM == -1 && GANTRY_E_CHECK == -14);
HOLDS(GANTRY_F16 == 0 && GANTRY_BF16 == 1 && GANTRY_F32 == 2 && GANTRY_F64 == 3 && GANTRY_I8 == 4 && GANTRY_U64 == 9 &&
      GANTRY_F8E4M3 == 10 && GANTRY_F8E5M2 == 11);
HOLDS(GANTRY_READ == 1 && GANTRY_WRITE == 2 && GANTRY_READWRITE == 3 && GANTRY_SUM == 4 && GANTRY_PROD == 7);
HOLDS(GANTRY_INPUT == 1 && GANTRY_STATE == 2 && GANTRY_CONST == 3 && GANTRY_TEMP == 4);
HOLDS(GANTRY_ALL == 0 && GANTRY_PARTS == 1 && GANTRY_ROWS == 2 && GANTRY_TILES == 3);
HOLDS(GANTRY_VALUE == 1 && GANTRY_UNIFORM == 2 && GANTRY_NORMAL == 3 && GANTRY_IOTA == 4);
HOLDS(GANTRY_ALL_REDUCE == 1 && GANTRY_ALL_TO_ALL == 8);
HOLDS(GANTRY_DOT == 1 && GANTRY_SVG == 2 && GANTRY_HTML == 3 && GANTRY_CHROME == 4 && GANTRY_TEXT == 5);
HOLDS(GANTRY_REPORT == 6);
HOLDS(GANTRY_KERNEL_VARIADIC == 1 && GANTRY_KERNEL_PURE == 16 && GANTRY_KERNEL_RESIDENT == 32);
HOLDS(GANTRY_NONE == UINT32_MAX);

/* It is the compiler that tests. */
int main(void)
{
    return 0;
}
