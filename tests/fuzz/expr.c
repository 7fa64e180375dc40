/* SPDX-License-Identifier: Apache-2.0 */
/* An expression: what is printed of it is read to an expression that is printed the same and has the same value. */
#include "base/expr.h"
#include "fuzz.h"

#include <string.h>

static bool look_up(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    (void)context;
    *integer = name[0] % 7;
    *real = (double)*integer;
    *is_real = false;
    return name[0] >= 'a';
}

static const gy_expr *parse(gy_arena *arena, const char *text, size_t length, gantry_error *err)
{
    const gy_expr *e = NULL;
    gantry_status status = gy_expr_parse(&e, arena, text, length, GANTRY_E_GRAPH, "", err);
    fuzz_check_error(status, err);
    return status ? NULL : e;
}

static void check_again(gy_arena *arena, const gy_expr *e)
{
    gantry_error err = { 0 };
    int64_t value = 0, second = 0;
    gy_text text = { 0 }, again = { 0 };
    gy_expr_print(&text, e);
    const gy_expr *other = parse(arena, text.at, text.length, &err);
    MUST_HOLD(other != NULL, &err);
    gy_expr_print(&again, other);
    MUST_HOLD(strcmp(text.at, again.at) == 0, &err);
    gantry_status status = gy_expr_integer(e, look_up, NULL, &value, GANTRY_E_GRAPH, "", &err);
    MUST_HOLD(gy_expr_integer(other, look_up, NULL, &second, GANTRY_E_GRAPH, "", &err) == status, &err);
    MUST_HOLD(value == second, &err);
    gy_text_free(&text);
    gy_text_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gy_arena arena = { 0 };
    gantry_error err = { 0 };
    const gy_expr *e = parse(&arena, (const char *)data, size, &err);
    if (e)
        check_again(&arena, e);
    gy_arena_free(&arena);
    return 0;
}
