/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way through the library, from a file of a graph with code of its own to a file with the result, in programs that
 * are unlike others: signals interrupt whatever can be interrupted, thousands of times a second; the stack of a thread
 * is small; the locale writes 0,5; standard input, output and error are closed. Each way ends with the same bytes.
 */
#include "support/run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <gantry/gantry.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 30000, STACK = 256 * 1024, PERIOD_NS = 200000, ROUNDS = 12, MANY = 200, NAME = 200 };

static const char graph[] =
    "{\"gantry\": 1, \"name\": \"way\", \"kernels\": {\"twice\": {\"host\": \"twice.c\", \"args\": ["
    "{\"name\": \"x\", \"access\": \"read\", \"dtype\": \"f64\"}, {\"name\": \"y\", \"access\": \"write\", "
    "\"dtype\": \"f64\"}]}}, \"buffers\": {"
    "\"x\": {\"dtype\": \"f64\", \"shape\": [30000], \"split\": 3, \"init\": {\"iota\": {\"start\": 0.5, \"step\": "
    "0.25}}}, \"y\": {\"dtype\": \"f64\", \"shape\": [30000], \"split\": 3}, "
    "\"z\": {\"dtype\": \"f64\", \"shape\": [30000], \"split\": 3, \"output\": true}}, \"nodes\": ["
    "{\"id\": \"t[i]\", \"for\": {\"i\": 3}, \"kernel\": \"twice\", \"args\": {\"x\": \"x[i]\", \"y\": \"y[i]\"}}, "
    "{\"id\": \"s[i]\", \"for\": {\"i\": 3}, \"kernel\": \"scale\", \"args\": {\"a\": 1.5, \"x\": \"y[i]\", \"y\": "
    "\"z[i]\"}}]}";
static const char code[] = "#include <gantry/kernel.h>\n"
                           "gantry_status twice(const gantry_launch *l);\n"
                           "gantry_status twice(const gantry_launch *l)\n{\n"
                           "    for (int64_t i = 0; i < l->arg[1].rows; i++)\n"
                           "        ((double *)l->arg[1].data)[i] = 2 * ((const double *)l->arg[0].data)[i];\n"
                           "    return GANTRY_OK;\n}\n";

/* ---- files ---- */

static char folder[] = "/tmp/gantry-surroundings-XXXXXX", command[NAME];

static const char *in_folder(const char *name, char to[NAME])
{
    snprintf(to, NAME, "%s/%s", folder, name);
    return to;
}

static void write_file(const char *name, const char *text)
{
    char path[NAME];
    FILE *file = fopen(in_folder(name, path), "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("way.json", graph);
    write_file("twice.c", code);
    setenv("XDG_CACHE_HOME", folder, 1);
}

static void tear_down(void)
{
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ---- the way ---- */

static void must(gantry_status status, const gantry_error *err)
{
    ck_assert_msg(status == GANTRY_OK, "%s: %s", gantry_status_name(status), err->text);
}

static gantry_schedule *make_schedule(void)
{
    char path[NAME];
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *made = NULL, *read = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    must(gantry_graph_load(&g, in_folder("way.json", path), &options, &err), &err);
    must(gantry_machine_virtual(&m, 2, &err), &err);
    must(gantry_machine_save(m, in_folder("machine.json", path), &err), &err);
    gantry_machine_free(m);
    must(gantry_machine_load(&m, path, &err), &err);
    must(gantry_schedule_new(&made, g, m, NULL, &err), &err);
    must(gantry_schedule_save(made, in_folder("schedule.json", path), &err), &err);
    must(gantry_schedule_load(&read, path, &err), &err);
    must(gantry_schedule_attach(read, g, &err), &err);
    gantry_schedule_free(made);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return read;
}

static void run_it(gantry_schedule *s)
{
    char path[NAME];
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    uint64_t ticket, bytes = 0;
    const void *host = NULL;
    gantry_buffer z = { .id = 2 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    options.allow_code = 1;
    must(gantry_run_new(&run, s, &options, &err), &err);
    must(gantry_run_start(run, &ticket, &err), &err);
    must(gantry_run_wait(run, ticket, &err), &err);
    must(gantry_run_output(run, z, &host, &bytes, &err), &err);
    for (int i = 0; i < ROWS; i++)
        ck_assert_double_eq(((const double *)host)[i], 3 * (0.5 + 0.25 * i));
    must(gantry_run_save(run, z, in_folder("z.npy", path), &err), &err);
    gantry_run_free(run);
}

/* Bytes of the schedule, yours, and that the file is whole. */
static char *go_the_way(void)
{
    char path[NAME], *text = NULL;
    size_t length = 0;
    struct stat info;
    gantry_error err = { 0 };
    gantry_schedule *s = make_schedule();
    run_it(s);
    must(gantry_schedule_json(s, &text, &length, &err), &err);
    gantry_schedule_free(s);
    ck_assert_int_eq(stat(in_folder("z.npy", path), &info), 0);
    ck_assert_int_gt((int)info.st_size, ROWS * 8);
    return text;
}

static char *expected;

static void go_again(void)
{
    char *text = go_the_way();
    ck_assert_str_eq(text, expected);
    gantry_free(text);
}

static void go_first(void)
{
    expected = go_the_way();
}

/* Compiles again. */
static void forget(void)
{
    snprintf(command, sizeof command, "rm -r %s/gantry", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ---- programs that are unlike others ---- */

static atomic_uint signals;

static void count(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

START_TEST(signals_interrupt_everything)
{
    go_first();
    forget();
    struct sigaction action = { .sa_handler = count }; /* no SA_RESTART */
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct itimerspec every = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
    timer_t timer;
    sigaction(SIGUSR1, &action, NULL);
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    ck_assert_int_eq(timer_settime(timer, 0, &every, NULL), 0);
    for (int i = 0; i < ROUNDS; i++)
        go_again();
    timer_delete(timer);
    printf("%u signals\n", atomic_load(&signals));
    ck_assert_uint_gt(atomic_load(&signals), MANY);
}
END_TEST

static void *go_in_thread(void *data)
{
    (void)data;
    go_again();
    return NULL;
}

START_TEST(a_thread_with_little_stack)
{
    go_first();
    forget();
    pthread_attr_t little;
    pthread_t thread;
    pthread_attr_init(&little);
    ck_assert_int_eq(pthread_attr_setstacksize(&little, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &little, go_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&little);
}
END_TEST

START_TEST(a_locale_with_a_decimal_comma)
{
    char plain[20];
    go_first();
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    int made = system(command);
    setenv("LOCPATH", folder, 1);
    if (made != 0 || !setlocale(LC_ALL, "de_DE.UTF-8")) {
        fprintf(stderr, "skipped: no localedef to make a locale with a decimal comma\n");
        return;
    }
    snprintf(plain, sizeof plain, "%.1f", 0.5);
    ck_assert_str_eq(plain, "0,5"); /* it is in force */
    forget();
    go_again();
}
END_TEST

/* No standard descriptor: the library's own have their numbers, and the compiler's output is still the compiler's. */
START_TEST(closed_descriptors)
{
    go_first();
    forget();
    int kept[3];
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        close(fd);
    }
    go_again();
    for (int fd = 0; fd < 3; fd++) {
        ck_assert_msg(fcntl(fd, F_GETFD) < 0 && errno == EBADF, "descriptor %d was left open", fd);
        dup2(kept[fd], fd);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("surroundings");
    TCase *tests = tcase_create("surroundings");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, signals_interrupt_everything);
    tcase_add_test(tests, a_thread_with_little_stack);
    tcase_add_test(tests, a_locale_with_a_decimal_comma);
    tcase_add_test(tests, closed_descriptors);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
