/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files.h"

#include "base/cache.h"
#include "base/file.h"
#include "base/memory.h"
#include "folder.h"
#include "suite.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_holds(const char *path, const char *text)
{
    char *got;
    size_t length;
    ck_assert_int_eq(gy_file_read(&got, &length, path, NULL), GANTRY_OK);
    ck_assert_str_eq(got, text);
    gy_free(got);
}

static void add(gantry_files *files, const char *path, const char *text)
{
    gantry_error err;
    ck_assert_int_eq(gantry_files_add(files, path, text, strlen(text), &err), GANTRY_OK);
}

static gantry_files *begin(void)
{
    gantry_files *files;
    ck_assert_int_eq(gantry_files_new(&files, NULL), GANTRY_OK);
    return files;
}

START_TEST(files_appear_together)
{
    gantry_files *files = begin();
    ck_assert_int_eq(gy_file_write("b", "old", 3, NULL), GANTRY_OK);
    add(files, "a", "first");
    add(files, "b", "second");
    add(files, "/dev/null", "third");
    ck_assert(access("a", F_OK) != 0);
    assert_holds("b", "old");
    int nameless = open(".", O_RDWR | O_TMPFILE, 0600);
    ck_assert(nameless < 0 || files_here() == 1);
    close(nameless);
    ck_assert_int_eq(gantry_files_commit(files, NULL), GANTRY_OK);
    assert_holds("a", "first");
    assert_holds("b", "second");
    ck_assert_int_eq(files_here(), 2);
    add(files, "a", "again");
    ck_assert_int_eq(gantry_files_commit(files, NULL), GANTRY_OK);
    assert_holds("a", "again");
    gantry_files_free(files);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

START_TEST(what_is_not_committed_leaves_nothing)
{
    static char large[100000];
    gantry_files *files = begin();
    gantry_error err;
    struct rlimit limit = { 1000, 1000 };
    add(files, "a", "first");
    ck_assert_int_eq(gantry_files_add(files, "none/b", "x", 1, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot create none/b: No such file or directory");
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(gantry_files_add(files, "c", large, sizeof large, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot write c: File too large");
    gantry_files_free(files);
    ck_assert_int_eq(files_here(), 0);
}
END_TEST

START_TEST(arguments_are_looked_at)
{
    gantry_files *files = begin();
    ck_assert_int_eq(gantry_files_new(NULL, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_files_add(NULL, "a", "x", 1, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_files_add(files, NULL, "x", 1, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_files_add(files, "a", NULL, 1, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_files_commit(NULL, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_files_commit(files, NULL), GANTRY_OK);
    gantry_files_free(NULL);
    gantry_files_free(files);
}
END_TEST

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0444);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static long pid_of_dead(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return child;
}

START_TEST(what_dead_processes_left_is_removed)
{
    long dead = pid_of_dead();
    char left[2][64], kept[7][64];
    snprintf(left[0], sizeof *left, "f.%ld-0.tmp", dead);
    snprintf(left[1], sizeof *left, "f.%ld-17.tmp", dead);
    snprintf(kept[0], sizeof *kept, "f.%ld-0.tmp", (long)getppid());
    snprintf(kept[1], sizeof *kept, "f.%ld-0.tmp", (long)getpid());
    snprintf(kept[2], sizeof *kept, "g.%ld-0.tmp", dead);
    snprintf(kept[3], sizeof *kept, "f.%ld-0.tmp.bak", dead);
    snprintf(kept[4], sizeof *kept, "f.-%ld-0.tmp", dead);
    snprintf(kept[5], sizeof *kept, "f.%ld-.tmp", dead);
    snprintf(kept[6], sizeof *kept, "f.%ld-1.tmp", dead); /* held by somebody who is not seen here */
    for (int i = 0; i < 9; i++)
        touch(i < 2 ? left[i] : kept[i - 2]);
    int held = open(kept[6], O_RDONLY);
    ck_assert_int_eq(flock(held, LOCK_EX), 0);
    ck_assert_int_eq(gy_file_write("f", "x", 1, NULL), GANTRY_OK);
    for (int i = 0; i < 9; i++)
        ck_assert_msg((access(i < 2 ? left[i] : kept[i - 2], F_OK) == 0) == (i >= 2), "%d", i);
    close(held);
    ck_assert_int_eq(files_here(), 8);
}
END_TEST

enum { BYTES = 1 << 20 };

/* Both files over and over, each time full of another letter. */
static void write_for_ever(void)
{
    static char text[BYTES + 1];
    for (int i = 0;; i++) {
        gantry_files *files = begin();
        memset(text, 'a' + i % 26, BYTES);
        add(files, "f", text);
        add(files, "g", text);
        if (gantry_files_commit(files, NULL))
            _exit(1);
        gantry_files_free(files);
    }
}

static void assert_whole(const char *path)
{
    char *text;
    size_t length;
    if (access(path, F_OK) != 0)
        return; /* killed before there was any */
    ck_assert_int_eq(gy_file_read(&text, &length, path, NULL), GANTRY_OK);
    ck_assert_uint_eq(length, BYTES);
    ck_assert_msg(strspn(text, (char[]){ text[0], 0 }) == BYTES, "%s is of two files", path);
    gy_free(text);
}

START_TEST(killed_writers_leave_whole_files)
{
    uint64_t random = 8;
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0)
            write_for_ever();
        usleep((useconds_t)(next_random(&random) % 20000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        assert_whole("f");
        assert_whole("g");
    }
    ck_assert_int_eq(gy_file_write("f", "x", 1, NULL), GANTRY_OK);
    ck_assert_int_eq(gy_file_write("g", "x", 1, NULL), GANTRY_OK);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

/* A system call fails with `code` from now on, where its argument has that bit (0: always), as in a sandbox or on
 * another file system. */
static int forbid(int call, unsigned argument, unsigned bit, int code)
{
    unsigned at = (unsigned)offsetof(struct seccomp_data, args) + argument * 8;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bit ? at : offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit ? bit : 0xffffffff, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
        BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static const struct lack {
    int call;
    unsigned argument, bit;
    int code;
} lacks[] = {
    { SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP },
    { SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EISDIR },
    { SYS_linkat, 0, 0, EPERM },
    { SYS_linkat, 0, 0, ENOENT },
    { SYS_flock, 0, 0, ENOLCK },
};

START_TEST(file_systems_that_lack_something_will_do)
{
    const struct lack *l = &lacks[_i];
    if (forbid(l->call, l->argument, l->bit, l->code))
        return;
    gantry_files *files = begin();
    struct stat info;
    ck_assert_int_eq(gy_file_write("a", "old", 3, NULL), GANTRY_OK);
    ck_assert_int_eq(chmod("a", 0640), 0);
    add(files, "a", "new");
    add(files, "b", "other");
    ck_assert_int_eq(gantry_files_commit(files, NULL), GANTRY_OK);
    gantry_files_free(files);
    assert_holds("a", "new");
    assert_holds("b", "other");
    ck_assert(stat("a", &info) == 0 && (info.st_mode & 07777) == 0640);
    mode_t mask = umask(022);
    ck_assert(stat("b", &info) == 0 && (info.st_mode & 07777) == (0666 & ~mask));
    files = begin();
    add(files, "c", "dropped");
    gantry_files_free(files);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

/* A folder that somebody else has locked, before its maker could, is removed by that one, by name, later: the maker may
 * not free the name for a folder that is in use then. */
START_TEST(what_another_locked_keeps_its_name)
{
    gy_cache_entry entry;
    gy_cache_work work;
    char here[4096], name[64];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", here, 1), 0);
    ck_assert_int_eq(gy_cache_open(&entry, 1, ".x", NULL), GANTRY_OK);
    if (forbid(SYS_flock, 0, 0, EWOULDBLOCK))
        return;
    ck_assert_int_eq(gy_cache_work_begin(&work, &entry, NULL), GANTRY_E_IO);
    snprintf(name, sizeof name, "gantry/%ld-0.tmp", (long)getpid());
    ck_assert_int_eq(access(name, F_OK), 0);
    gy_cache_close(&entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files that appear together");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, enter_folder, leave_folder);
    tcase_add_test(tests, files_appear_together);
    tcase_add_test(tests, what_is_not_committed_leaves_nothing);
    tcase_add_test(tests, arguments_are_looked_at);
    tcase_add_test(tests, what_dead_processes_left_is_removed);
    tcase_add_test(tests, killed_writers_leave_whole_files);
    tcase_add_loop_test(tests, file_systems_that_lack_something_will_do, 0, sizeof lacks / sizeof *lacks);
    tcase_add_test(tests, what_another_locked_keeps_its_name);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
