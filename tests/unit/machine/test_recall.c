/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of a user knows computers: one for each, whole or not used, whoever writes at one time. */
#include "machine/build.h"
#include "machine/recall.h"
#include "suite.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/gantry-recall-XXXXXX";

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("GANTRY_MACHINE_CACHE");
}

static void tear_down(void)
{
    char line[128];
    snprintf(line, sizeof line, "chmod -R u+rwx %s && rm -r %s", folder, folder);
    ck_assert_int_eq(system(line), 0);
}

/* A computer as it is detected: the driver, how much of the GPU's memory others hold, and kernels it is known to run.
 */
static gantry_machine *computer(const char *driver, int reserved, const char *rest)
{
    gy_text text = { 0 };
    gy_text_printf(&text,
                   "{'gantry_machine':1,'name':'t','memories':[{'id':'host','capacity':1000},{'id':'gpu0','capacity':"
                   "1000,'reserved':%d}],'devices':[{'id':'gpu0','kind':'h200','type':'gpu','memory':'gpu0','ordinal':"
                   "0}],'routes':[{'from':'*','to':'*','bandwidth_gbs':1}],%s'calibration':{'fingerprint':{'driver':"
                   "'%s'},'copies':{'figures':2,'samples':3,'mad':0,'worst':0}}}",
                   reserved, rest, driver);
    gantry_machine *m = machine_of(text.at);
    gy_text_free(&text);
    return m;
}
#define GEMM                                                                                                           \
    "'kernels':[{'kernel':'gemm','dtype':'f32','kind':'h200','case':'8x8 8x8 8x8','by':'flops','points':[[1024,3]]}],"

static gantry_machine *recall(const gantry_machine *here, char **text)
{
    gantry_machine *m = NULL;
    ck_assert_int_eq(gantry_machine_recall(&m, here, text, NULL), GANTRY_OK);
    return m;
}

/* The machine knows gemm, or is `here` itself, of which this is said. */
static void check(const gantry_machine *here, bool known, const char *said)
{
    char *text = NULL;
    gantry_machine *m = recall(here, &text);
    ck_assert_int_eq(m != here, known);
    ck_assert_int_eq(gy_machine_case(m, "gemm", GANTRY_F32, "h200", "8x8 8x8 8x8") != NULL, known);
    ck_assert_msg(!text == !said && (!said || strstr(text, said)), "%s", text ? text : "nothing");
    ck_assert_uint_eq(m->memory[1].reserved, here->memory[1].reserved);
    gantry_free(text);
    gantry_machine_free(m);
}

static void keep(const gantry_machine *m, const gantry_machine *here)
{
    gantry_error err = { 0 };
    ck_assert_msg(gantry_machine_keep(m, here, &err) == GANTRY_OK, "%s", err.text);
}

#define KNOWN "calibrated; 1 time of kernels for exact arguments, kept in "

START_TEST(each_computer_by_itself)
{
    gantry_machine *a = computer("1", 0, ""), *b = computer("2", 0, ""), *busy = computer("1", 300, ""),
                   *m = computer("1", 0, GEMM);
    check(a, false, NULL);
    keep(m, a);
    check(a, true, KNOWN);
    check(busy, true, KNOWN); /* others use memory now */
    check(b, false, NULL);
    keep(a, b); /* what is like b knows no gemm */
    check(a, true, KNOWN);
    keep(a, a);
    char *text = NULL;
    gantry_machine *again = recall(a, &text);
    ck_assert(again != a && !gy_machine_case(again, "gemm", GANTRY_F32, "h200", "8x8 8x8 8x8"));
    gantry_free(text);
    gantry_machine *list[] = { a, b, busy, m, again };
    for (size_t i = 0; i < 5; i++)
        gantry_machine_free(list[i]);
}
END_TEST

/* The path of the only entry. */
static void entry_path(char *path, size_t size)
{
    char line[128];
    snprintf(line, sizeof line, "ls %s/gantry/*.machine", folder);
    FILE *list = popen(line, "r");
    ck_assert(list && fgets(path, (int)size, list));
    path[strcspn(path, "\n")] = 0;
    pclose(list);
}

static char *read_file(const char *path, size_t *length)
{
    char *text = malloc(1 << 16);
    FILE *file = fopen(path, "r");
    ck_assert(text && file);
    *length = fread(text, 1, 1 << 16, file);
    fclose(file);
    return text;
}

static void write_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fwrite(text, 1, length, file) == length && !fclose(file));
}

/* Cut anywhere, changed anywhere, of somebody else, or a link: it is not used, which is said; and is replaced. */
START_TEST(damage)
{
    gantry_machine *here = computer("1", 0, ""), *m = computer("1", 0, GEMM);
    char path[128];
    size_t length;
    keep(m, here);
    entry_path(path, sizeof path);
    char *whole = read_file(path, &length);
    for (size_t i = 0; i < length; i += 37) {
        write_file(path, whole, i);
        check(here, false, "damaged");
        whole[i] ^= 4;
        write_file(path, whole, length);
        check(here, false, "damaged");
        whole[i] ^= 4;
    }
    write_file(path, whole, length);
    check(here, true, KNOWN);
    ck_assert_int_eq(chmod(path, 0666), 0);
    check(here, false, "damaged, or somebody else's");
    ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0); /* it is not read */
    check(here, false, "damaged");
    keep(m, here);
    check(here, true, KNOWN);
    free(whole);
    gantry_machine_free(here);
    gantry_machine_free(m);
}
END_TEST

/* A sealed entry under the name of another computer, and one that no machine is in. */
START_TEST(wrong_contents)
{
    gantry_machine *here = computer("1", 0, ""), *other = computer("2", 0, GEMM);
    gantry_error err;
    ck_assert_int_eq(gy_recall_keep(other, here, &err), GANTRY_OK);
    check(here, false, "is of another computer than this one");
    char path[128];
    entry_path(path, sizeof path);
    gy_cache_entry e;
    ck_assert_int_eq(gy_cache_open(&e, strtoull(strrchr(path, '/') + 1, NULL, 16), ".machine", NULL), GANTRY_OK);
    ck_assert_str_eq(e.path, path);
    ck_assert_int_eq(gy_cache_keep(&e, "{}", 2, NULL), GANTRY_OK);
    gy_cache_close(&e);
    check(here, false, "what was measured before is not used: ");
    gantry_machine_free(here);
    gantry_machine_free(other);
}
END_TEST

START_TEST(no_place)
{
    gantry_machine *here = computer("1", 0, ""), *m = computer("1", 0, GEMM), *none = computer("1", 0, "");
    gantry_error err = { 0 };
    none->calibration.facts = 0; /* as without GPUs */
    ck_assert_int_eq(gantry_machine_keep(m, none, &err), GANTRY_E_UNSUPPORTED);
    keep(m, here);
    setenv("GANTRY_MACHINE_CACHE", "off", 1);
    check(here, false, NULL);
    ck_assert_int_eq(gantry_machine_keep(m, here, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "GANTRY_MACHINE_CACHE"));
    unsetenv("GANTRY_MACHINE_CACHE");
    check(none, false, NULL);
    ck_assert_int_eq(chmod(folder, 0500), 0);
    check(here, true, KNOWN);
    char inner[64];
    snprintf(inner, sizeof inner, "%s/gantry", folder);
    ck_assert_int_eq(chmod(inner, 0777), 0); /* others may write: nothing is taken from there */
    check(here, false, NULL);
    ck_assert_int_eq(gantry_machine_keep(m, here, &err), GANTRY_E_IO);
    ck_assert(!gy_recall_is_writable(here));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    check(here, false, NULL);
    ck_assert_int_eq(gantry_machine_keep(m, here, &err), GANTRY_E_IO);
    gantry_machine_free(here);
    gantry_machine_free(m);
    gantry_machine_free(none);
}
END_TEST

START_TEST(refusals)
{
    gantry_machine *here = computer("1", 0, ""), *two = load_machine("hgx-h200-8"), *bare = computer("1", 0, "");
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_keep(two, here, &err), GANTRY_E_INVALID);
    bare->calibration.measured = false;
    ck_assert_int_eq(gantry_machine_keep(bare, here, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "no measured figures"));
    check(here, false, NULL);
    gantry_machine_free(here);
    gantry_machine_free(two);
    gantry_machine_free(bare);
}
END_TEST

/* Of too many the newest stay, those that stand last; tables for all arguments do. */
START_TEST(too_many)
{
    enum { MANY = GY_RECALL_CASES + 50 };
    gantry_machine *here = computer("1", 0, ""), *m = computer("1", 0, "");
    gy_point p = { 7, 1000000 };
    char text[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%d", i);
        gy_kernel_table t = { .kernel = "k", .kind = "h200", .point = &p, .points = 1, .arguments = i ? text : NULL };
        ck_assert(gy_machine_add_kernel(m, &t));
    }
    for (uint64_t i = 1; i <= GY_RECALL_MARKS + 3; i++)
        ck_assert(gy_recall_mark(m, i << 40) && gy_recall_mark(m, i << 40));
    gy_recall_trim(m);
    ck_assert_uint_eq(m->kernels, GY_RECALL_CASES + 1);
    ck_assert_uint_eq(m->notes, GY_RECALL_MARKS);
    ck_assert(!gy_recall_has_mark(m, UINT64_C(3) << 40) && gy_recall_has_mark(m, UINT64_C(4) << 40));
    ck_assert_ptr_nonnull(gy_machine_kernel(m, "k", GANTRY_F16, "h200"));
    ck_assert_ptr_null(gy_machine_case(m, "k", GANTRY_F16, "h200", "49"));
    ck_assert_ptr_null(gy_machine_case(m, "k", GANTRY_F16, "h200", "25"));
    snprintf(text, sizeof text, "%d", MANY - 1);
    ck_assert_ptr_nonnull(gy_machine_case(m, "k", GANTRY_F16, "h200", text));
    keep(m, here);
    char *said = NULL;
    gantry_machine *known = recall(here, &said);
    ck_assert_uint_eq(known->kernels, GY_RECALL_CASES + 1);
    ck_assert_uint_eq(known->notes, 0); /* marks are not for people */
    gantry_free(said);
    gantry_machine_free(known);
    gantry_machine_free(here);
    gantry_machine_free(m);
}
END_TEST

/* Processes write and read at one time: what is read is whole. */
START_TEST(together)
{
    gantry_machine *here = computer("1", 0, ""), *m = computer("1", 0, GEMM);
    keep(m, here);
    for (int i = 0; i < 6; i++)
        if (fork() == 0) {
            for (int k = 0; k < 30; k++) {
                char *text = NULL;
                gantry_machine *known = NULL;
                if (gantry_machine_keep(m, here, NULL) || gantry_machine_recall(&known, here, &text, NULL) ||
                    known == here)
                    _exit(1);
                gantry_free(text);
                gantry_machine_free(known);
            }
            _exit(0);
        }
    for (int i = 0; i < 6; i++) {
        int status = 0;
        ck_assert(wait(&status) > 0 && WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    check(here, true, KNOWN);
    gantry_machine_free(here);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("machine: recall");
    TCase *c = tcase_create("recall");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, each_computer_by_itself);
    tcase_add_test(c, damage);
    tcase_add_test(c, wrong_contents);
    tcase_add_test(c, no_place);
    tcase_add_test(c, refusals);
    tcase_add_test(c, too_many);
    tcase_add_test(c, together);
    suite_add_tcase(s, c);
    return run_suite(s);
}
