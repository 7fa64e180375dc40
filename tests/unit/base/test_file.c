/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/memory.h"
#include "folder.h"
#include "suite.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_holds(const char *path, const void *data, size_t length)
{
    char *text;
    size_t got;
    gantry_error err;
    ck_assert_int_eq(gy_file_read(&text, &got, path, &err), GANTRY_OK);
    ck_assert_uint_eq(got, length);
    ck_assert(memcmp(text, data, length) == 0);
    ck_assert_int_eq(text[length], 0);
    gy_free(text);
}

START_TEST(what_is_written_is_read)
{
    static const size_t lengths[] = { 0, 1, 4096, 65535, 65536, 65537, 1000000 };
    char *data = malloc(1000000);
    for (size_t i = 0; i < 1000000; i++)
        data[i] = (char)(i * 31 + i / 256);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        ck_assert_int_eq(gy_file_write("data", data, lengths[i], NULL), GANTRY_OK);
        assert_holds("data", data, lengths[i]);
        ck_assert_int_eq(files_here(), 1);
    }
    free(data);
}
END_TEST

/* A pipe has no size to begin with; 200000 bytes are more than one step. */
START_TEST(standard_input_is_dash)
{
    enum { BYTES = 200000 };
    static char data[BYTES];
    memset(data, 'p', BYTES);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        for (size_t done = 0; done < BYTES;) {
            ssize_t put = write(ends[1], data + done, BYTES - done);
            done += put > 0 ? (size_t)put : 0;
        }
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_holds("-", data, BYTES);
}
END_TEST

static void assert_read_fails(const char *path, int native, const char *text)
{
    char untouched, *data = &untouched;
    size_t length = 77;
    gantry_error err;
    ck_assert_int_eq(gy_file_read(&data, &length, path, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, text);
    ck_assert_int_eq(err.native, native);
    ck_assert_ptr_eq(data, &untouched);
    ck_assert_uint_eq(length, 77);
}

START_TEST(reading_says_what_is_wrong)
{
    assert_read_fails("absent.json", ENOENT, "cannot open absent.json: No such file or directory");
    assert_read_fails("/tmp", EISDIR, "cannot read /tmp: Is a directory");
    assert_read_fails("none/a.json", ENOENT,
                      "cannot open none/a.json: No such file or directory; there is no folder \"none\"");
    gantry_error err;
    ck_assert_int_eq(gy_file_write("present.json", "x", 1, &err), GANTRY_OK);
    assert_read_fails("presnet.json", ENOENT,
                      "cannot open presnet.json: No such file or directory (did you mean \"present.json\"?)");
    assert_read_fails("./presen.json", ENOENT,
                      "cannot open ./presen.json: No such file or directory (did you mean \"./present.json\"?)");
    assert_read_fails("absence.json", ENOENT, "cannot open absence.json: No such file or directory");
    ck_assert_int_eq(unlink("present.json"), 0);
}
END_TEST

static void assert_write_fails(const char *path, int native, const char *text)
{
    gantry_error err;
    ck_assert_int_eq(gy_file_write(path, "x", 1, &err), GANTRY_E_IO);
    ck_assert_int_eq(err.native, native);
    ck_assert_str_eq(err.text, text);
}

START_TEST(writing_says_what_is_wrong)
{
    char create[200];
    snprintf(create, sizeof create, "cannot create none/file: No such file or directory");
    assert_write_fails("none/file", ENOENT, create);
    assert_write_fails("/tmp", EISDIR, "cannot write /tmp: Is a directory");
    assert_write_fails("/dev/full", ENOSPC, "cannot write /dev/full: No space left on device");
    ck_assert_int_eq(files_here(), 0);
}
END_TEST

START_TEST(devices_and_links_stay)
{
    struct stat info;
    ck_assert_int_eq(gy_file_write("/dev/null", "x", 1, NULL), GANTRY_OK);
    ck_assert(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    ck_assert_int_eq(gy_file_write("real", "old", 3, NULL), GANTRY_OK);
    ck_assert_int_eq(chmod("real", 0640), 0);
    ck_assert_int_eq(symlink("real", "link"), 0);
    ck_assert_int_eq(gy_file_write("link", "new", 3, NULL), GANTRY_OK);
    ck_assert(lstat("link", &info) == 0 && S_ISLNK(info.st_mode));
    assert_holds("real", "new", 3);
    ck_assert(stat("real", &info) == 0 && (info.st_mode & 07777) == 0640);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

/* Whoever has the old file open goes on reading the old bytes: it was replaced, not overwritten. */
START_TEST(a_reader_never_sees_half_a_file)
{
    ck_assert_int_eq(gy_file_write("f", "before", 6, NULL), GANTRY_OK);
    FILE *old = fopen("f", "r");
    ck_assert_int_eq(gy_file_write("f", "after", 5, NULL), GANTRY_OK);
    char bytes[16] = "";
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, old), 6);
    ck_assert(memcmp(bytes, "before", 6) == 0);
    fclose(old);
    assert_holds("f", "after", 5);
    mode_t mask = umask(022);
    umask(mask);
    struct stat info;
    ck_assert(stat("f", &info) == 0 && (info.st_mode & 07777) == (0666 & ~mask));
}
END_TEST

/* A full disk, played by a limit on the size of files: the old file stays, and nothing else. */
START_TEST(a_failed_write_leaves_the_old_file)
{
    static char large[100000];
    ck_assert_int_eq(gy_file_write("f", "before", 6, NULL), GANTRY_OK);
    struct rlimit limit = { 1000, 1000 };
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    gantry_error err;
    gantry_status status = gy_file_write("f", large, sizeof large, &err);
    ck_assert_int_eq(status, GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot write f: File too large");
    assert_holds("f", "before", 6);
    ck_assert_int_eq(files_here(), 1);
}
END_TEST

/* Left by a run that was killed: the name is taken, the next one is used, and the old one is not touched. */
START_TEST(a_left_over_temporary_is_no_obstacle)
{
    char name[64];
    snprintf(name, sizeof name, "f.%ld-0.tmp", (long)getpid());
    FILE *left = fopen(name, "w");
    fclose(left);
    ck_assert_int_eq(gy_file_write("f", "x", 1, NULL), GANTRY_OK);
    assert_holds("f", "x", 1);
    assert_holds(name, "", 0);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

static void assert_join(const char *into, const char *name, const char *expected)
{
    char *path = gy_path_join(into, name);
    ck_assert_str_eq(path, expected);
    gy_free(path);
}

static void assert_folder(const char *path, const char *expected)
{
    char *got = gy_path_folder(path);
    ck_assert_str_eq(got, expected);
    gy_free(got);
}

START_TEST(paths_are_text)
{
    assert_join("a/b", "c", "a/b/c");
    assert_join("a/", "c", "a/c");
    assert_join("a", "/c", "/c");
    assert_join("", "c", "c");
    assert_join(NULL, "c", "c");
    assert_join("/", "c", "/c");
    assert_folder("c", ".");
    assert_folder("a/c", "a");
    assert_folder("a/b//c", "a/b");
    assert_folder("/c", "/");
    assert_folder("//c", "/");
    static const char *const inside[] = { "a", "a/b", "a/../b", "./a", "a/./b", "a//b", "..a", "a/b/../../c", "a/.." };
    static const char *const outside[] = { "", "/a", "..", "../a", "a/../../b", "./..", "a/..//../b" };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        ck_assert_msg(gy_path_is_inside(inside[i]), "%s", inside[i]);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        ck_assert_msg(!gy_path_is_inside(outside[i]), "%s", outside[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, enter_folder, leave_folder);
    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, standard_input_is_dash);
    tcase_add_test(tests, reading_says_what_is_wrong);
    tcase_add_test(tests, writing_says_what_is_wrong);
    tcase_add_test(tests, devices_and_links_stay);
    tcase_add_test(tests, a_reader_never_sees_half_a_file);
    tcase_add_test(tests, a_failed_write_leaves_the_old_file);
    tcase_add_test(tests, a_left_over_temporary_is_no_obstacle);
    tcase_add_test(tests, paths_are_text);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
