/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every way to a machine fails once: reported as such, and nothing is left behind. */
#include "machine/gpus.h"
#include "suite.h"
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);

static long until_failure = -1; /* allocations that still succeed; below 0: all */
static long alive;              /* pieces that were not freed */

static bool refuse(void)
{
    if (until_failure > 0)
        until_failure--;
    return until_failure == 0;
}

static void *counted(void *memory)
{
    alive += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return refuse() ? NULL : counted(__real_malloc(bytes));
}
void *__wrap_calloc(size_t count, size_t bytes)
{
    return refuse() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (refuse())
        return NULL;
    void *moved = __real_realloc(old, bytes);
    alive += moved && !old;
    return moved;
}

void __wrap_free(void *memory)
{
    alive -= memory != NULL;
    __real_free(memory);
}

static gantry_machine *whole;
static char *text;

static gantry_status by_parse(gantry_machine **out)
{
    return gantry_machine_parse(out, text, strlen(text), "x", NULL);
}
static gantry_status by_select(gantry_machine **out)
{
    return gantry_machine_select(out, whole, "id:0,gpu3", NULL);
}
static gantry_status by_virtual(gantry_machine **out)
{
    return gantry_machine_virtual(out, 40, NULL);
}
static gantry_status by_detect(gantry_machine **out)
{
    return gy_machine_detect(out, NULL, NULL);
}

static gantry_status by_text(gantry_machine **out)
{
    char *written = NULL;
    gantry_status status = gantry_machine_json(whole, &written, NULL, NULL);
    if (!status)
        *out = gy_machine_ref(whole);
    gantry_free(written);
    return status;
}

static gantry_status by_value(gantry_machine **out)
{
    json_t *value = NULL;
    gantry_status status = gy_machine_to_json(whole, &value, NULL);
    if (!status)
        *out = gy_machine_ref(whole);
    json_decref(value);
    return status;
}

/* A refusal that lists devices allocates too. */
static gantry_status by_refusal(gantry_machine **out)
{
    gantry_status status = gantry_machine_select(out, whole, "id:nobody", NULL);
    if (status == GANTRY_E_INVALID) {
        *out = gy_machine_ref(whole);
        return GANTRY_OK;
    }
    return status;
}

typedef gantry_status (*way)(gantry_machine **out);
static const way ways[] = { by_parse, by_select, by_virtual, by_detect, by_text, by_value, by_refusal };
#define WAYS (int)(sizeof ways / sizeof *ways)
static const char *const files[] = { "dgx1-v100", "hgx-h200-8", "sirocco" };

START_TEST(survives)
{
    size_t length = 0;
    whole = load_machine(files[_i / WAYS]);
    ck_assert_int_eq(gantry_machine_json(whole, &text, &length, NULL), GANTRY_OK);
    for (long n = 1;; n++) {
        gantry_machine *m = NULL;
        ck_assert_int_lt(n, 5000);
        long before = alive; /* after Check's own allocations */
        until_failure = n;
        gantry_status status = ways[_i % WAYS](&m);
        until_failure = -1;
        gantry_machine_free(m);
        ck_assert_msg(alive == before, "allocation %ld: %ld pieces were not freed", n, alive - before);
        if (!status) {
            ck_assert_int_ge(n, 3);
            break;
        }
        ck_assert_int_eq(status, GANTRY_E_NOMEM);
        ck_assert_ptr_null(m);
    }
    gantry_free(text);
    gantry_machine_free(whole);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine without memory");
    TCase *tc = tcase_create("nomem");
    setenv("HWLOC_SYNTHETIC", "node:2(memory=4000000000) core:3 pu:2", 1);
    tcase_add_loop_test(tc, survives, 0, 3 * WAYS);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
