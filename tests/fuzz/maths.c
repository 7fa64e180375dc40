/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas: what is printed of them is read to the same again, and they can be carried out where they have types. The
 * first byte chooses the types. */
#include "maths/maths.h"
#include "fuzz.h"

#include <string.h>

enum { ELEMENTS = 300 };

static void carry_out(const gy_maths_program *program)
{
    gantry_error err = { 0 };
    static uint64_t memory[GY_MATHS_ARGS][ELEMENTS];
    static int64_t shape[1] = { ELEMENTS };
    gantry_arg arg[GY_MATHS_ARGS];
    for (uint32_t i = 0; i < program->maths->args; i++) {
        gantry_dtype dtype = program->kind[i].dtype;
        memset(memory[i], (int)(17 * i + 1), sizeof memory[i]);
        arg[i] = (gantry_arg){ .dtype = dtype,
                               .rank = 1,
                               .shape = shape,
                               .rows = ELEMENTS,
                               .row_bytes = (int64_t)gantry_dtype_size(dtype),
                               .data = memory[i],
                               .number = -1.5 };
    }
    gantry_launch launch = { .user = (void *)(uintptr_t)program, .arg = arg, .arg_size = sizeof *arg };
    MUST_HOLD(gy_maths_run(&launch) == GANTRY_OK, &err);
}

static void give_types(gy_arena *arena, const gy_maths *maths, uint8_t seed)
{
    gy_maths_kind kind[GY_MATHS_ARGS];
    const gy_maths_program *program;
    gantry_error err = { 0 };
    for (uint32_t i = 0; i < maths->args; i++) {
        unsigned chosen = (seed + 5 * i) % (GANTRY_DTYPE_COUNT + 1);
        bool is_number = chosen == GANTRY_DTYPE_COUNT;
        kind[i] = (gy_maths_kind){ .is_number = is_number, .dtype = is_number ? GANTRY_F64 : (gantry_dtype)chosen };
    }
    gantry_status status = gy_maths_make_program(&program, arena, maths, kind, GANTRY_E_GRAPH, "", &err);
    fuzz_check_error(status, &err);
    if (program)
        carry_out(program);
}

static bool read_all(gy_maths *maths, gy_arena *arena, const char *text)
{
    gantry_error err = { 0 };
    *maths = (gy_maths){ 0 };
    gantry_status status = gy_maths_add_all(maths, arena, text, GANTRY_E_GRAPH, "", &err);
    fuzz_check_error(status, &err);
    return status == GANTRY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gy_maths maths, again;
    gy_arena arena = { 0 };
    gantry_error err = { 0 };
    char *text = size ? gy_arena_strndup(&arena, (const char *)data + 1, size - 1) : NULL;
    if (text && read_all(&maths, &arena, text)) {
        gy_text printed = { 0 }, second = { 0 };
        gy_maths_print(&printed, &maths);
        MUST_HOLD(read_all(&again, &arena, printed.at), &err);
        gy_maths_print(&second, &again);
        MUST_HOLD(strcmp(printed.at, second.at) == 0, &err);
        gy_text_free(&printed);
        gy_text_free(&second);
        give_types(&arena, &maths, data[0]);
    }
    gy_arena_free(&arena);
    return 0;
}
