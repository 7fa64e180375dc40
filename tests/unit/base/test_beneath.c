/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include "folder.h"
#include "suite.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* This makes the folder "in" with what lies in it, and what lies beside it. */
static const char layout[] =
    "mkdir -p in/sub/deep out && printf secret > out/file && printf A > in/a && printf B > in/sub/b && "
    "printf C > in/sub/deep/c && cd in && ln -s a link && ln -s sub folder && ln -s sub/ slashed && "
    "ln -s ../a sub/up && ln -s sub/deep/../b through && ln -s .. leave && ln -s ../out/file out && "
    "ln -s \"$PWD/a\" absolute && ln -s /etc/passwd passwd && ln -s nowhere dangling && ln -s loop loop && "
    "ln -s two one && ln -s one two && ln -s link chain && ln -s ../../out/file sub/far && "
    "ln -s a/ fileslash && ln -s . here && ln -s /dev/zero zero && mkfifo fifo && ln -s fifo tofifo && "
    "ln -s folder/up mixed && ln -s ../in/a round";

static const struct verdict {
    const char *name, *holds; /* one character; NULL: refused with `code` */
    int code;
} verdicts[] = {
    { "a", "A", 0 },
    { "./a", "A", 0 },
    { "sub/b", "B", 0 },
    { "sub//b", "B", 0 },
    { "sub/./b", "B", 0 },
    { "sub/../a", "A", 0 },
    { "sub/deep/../../a", "A", 0 },
    { "sub/deep/../b", "B", 0 },
    { "link", "A", 0 },
    { "chain", "A", 0 },
    { "folder/b", "B", 0 },
    { "folder//deep/c", "C", 0 },
    { "slashed/b", "B", 0 },
    { "folder/../a", "A", 0 },
    { "sub/up", "A", 0 },
    { "folder/up", "A", 0 },
    { "mixed", "A", 0 },
    { "through", "B", 0 },
    { "here/here/a", "A", 0 },
    { "", NULL, ENOENT },
    { "/etc/passwd", NULL, EXDEV },
    { "..", NULL, EXDEV },
    { "../out/file", NULL, EXDEV },
    { "../in/a", NULL, EXDEV },
    { "sub/../../out/file", NULL, EXDEV },
    { "sub/deep/../../../in/a", NULL, EXDEV },
    { "out", NULL, EXDEV },
    { "leave/out/file", NULL, EXDEV },
    { "leave/in/a", NULL, EXDEV },
    { "round", NULL, EXDEV },
    { "sub/far", NULL, EXDEV },
    { "folder/far", NULL, EXDEV },
    { "absolute", NULL, EXDEV },
    { "passwd", NULL, EXDEV },
    { "zero", NULL, EXDEV },
    { "dangling", NULL, ENOENT },
    { "none", NULL, ENOENT },
    { "none/a", NULL, ENOENT },
    { "none/../a", NULL, ENOENT },
    { "a/", NULL, ENOTDIR },
    { "a/.", NULL, ENOTDIR },
    { "a/../a", NULL, ENOTDIR },
    { "a/b", NULL, ENOTDIR },
    { "link/", NULL, ENOTDIR },
    { "fileslash", NULL, ENOTDIR },
    { "loop", NULL, ELOOP },
    { "one", NULL, ELOOP },
    { "loop/a", NULL, ELOOP },
};
enum { VERDICTS = sizeof verdicts / sizeof *verdicts };

static void enter(void)
{
    enter_folder();
    ck_assert_int_eq(system(layout), 0);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void assert_verdict(int fd, const struct verdict *v)
{
    int code = errno;
    char byte = 0;
    if (v->holds) {
        ck_assert_msg(fd >= 0, "%s: %s", v->name, strerror(code));
        ck_assert_msg(read(fd, &byte, 1) == 1 && byte == *v->holds, "%s holds '%c'", v->name, byte);
        close(fd);
    } else {
        ck_assert_msg(fd < 0, "%s is opened", v->name);
        ck_assert_msg(code == v->code, "%s: %s, not %s", v->name, strerror(code), strerror(v->code));
    }
}

static void assert_verdicts(int (*way)(int, const char *))
{
    int root = open("in", O_PATH | O_DIRECTORY), before = descriptors();
    for (size_t i = 0; i < VERDICTS; i++)
        assert_verdict(way(root, verdicts[i].name), &verdicts[i]);
    ck_assert_int_eq(descriptors(), before);
    close(root);
}

static bool kernel_can(void)
{
    int root = open("in", O_PATH | O_DIRECTORY), fd = gy_beneath_ask(root, "a");
    close(fd);
    close(root);
    return fd >= 0;
}

START_TEST(the_kernel_keeps_names_beneath_a_folder)
{
    if (kernel_can())
        assert_verdicts(gy_beneath_ask);
}
END_TEST

START_TEST(the_walk_keeps_names_beneath_a_folder)
{
    assert_verdicts(gy_beneath_walk);
}
END_TEST

START_TEST(folders_open_as_folders)
{
    static const char *const names[] = { ".", "sub", "sub/", "sub/..", "folder", "folder/", "here" };
    int (*const ways[])(int, const char *) = { gy_beneath_walk, gy_beneath_ask };
    int root = open("in", O_PATH | O_DIRECTORY);
    for (size_t w = 0; w < (kernel_can() ? 2 : 1); w++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            struct stat info;
            int fd = ways[w](root, names[i]);
            ck_assert_msg(fd >= 0 && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode), "%s", names[i]);
            close(fd);
        }
    }
    close(root);
}
END_TEST

START_TEST(long_ways_end)
{
    static char name[2 * PATH_MAX];
    int root = open("in", O_PATH | O_DIRECTORY);
    memset(name, 'x', sizeof name - 1);
    ck_assert(gy_beneath_walk(root, name) < 0 && errno == ENAMETOOLONG);
    name[300] = '\0';
    ck_assert(gy_beneath_walk(root, name) < 0 && errno == ENAMETOOLONG);
    for (size_t i = 0; i + 2 < PATH_MAX; i += 2)
        memcpy(name + i, "./", 3);
    name[PATH_MAX - 2] = 'a';
    name[PATH_MAX - 1] = '\0';
    int fd = gy_beneath_walk(root, name);
    ck_assert_int_ge(fd, 0);
    close(fd);
    close(root);
}
END_TEST

/* Both ways on random names over the components of the layout. */
START_TEST(both_ways_agree)
{
    static const char *const parts[] = { "a",    "sub",     "deep", "b",    "folder", "up",    "leave",
                                         "in",   "..",      "..",   ".",    "here",   "chain", "mixed",
                                         "none", "slashed", "out",  "loop", "c",      "far" };
    enum { PARTS = sizeof parts / sizeof *parts, NAMES = 20000 };
    uint64_t random = 12;
    int root = open("in", O_PATH | O_DIRECTORY), opened = 0;
    for (int i = 0; kernel_can() && i < NAMES; i++) {
        char name[200] = "";
        for (uint64_t n = 1 + next_random(&random) % 6; n > 0; n--) {
            strcat(name, parts[next_random(&random) % PARTS]);
            strcat(name, n > 1 || next_random(&random) % 8 == 0 ? "/" : "");
        }
        int asked = gy_beneath_ask(root, name), code = errno, walked = gy_beneath_walk(root, name);
        struct stat x, y;
        bool same = (asked < 0) == (walked < 0) && (asked >= 0 || code == errno);
        if (asked >= 0 && walked >= 0)
            same = fstat(asked, &x) == 0 && fstat(walked, &y) == 0 && x.st_ino == y.st_ino;
        ck_assert_msg(same, "%s: asked %d (%d), walked %d (%d)", name, asked, code, walked, errno);
        opened += asked >= 0;
        close(asked);
        close(walked);
    }
    ck_assert(!kernel_can() || opened > NAMES / 50);
    close(root);
}
END_TEST

/* openat2 fails with `code` from now on, as in the sandbox of a container. */
static bool forbid_openat2(int code)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

START_TEST(a_sandbox_without_openat2_is_no_obstacle)
{
    static const int codes[] = { ENOSYS, EPERM };
    int root = open("in", O_PATH | O_DIRECTORY);
    if (!forbid_openat2(codes[_i]))
        return; /* a sandbox already: the walk is tested by itself */
    ck_assert(gy_beneath_ask(root, "a") < 0 && errno == codes[_i]);
    close(root);
    for (size_t i = 0; i < VERDICTS; i++)
        assert_verdict(gy_beneath_open("in", verdicts[i].name), &verdicts[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("beneath");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, enter, leave_folder);
    tcase_add_test(tests, the_kernel_keeps_names_beneath_a_folder);
    tcase_add_test(tests, the_walk_keeps_names_beneath_a_folder);
    tcase_add_test(tests, folders_open_as_folders);
    tcase_add_test(tests, long_ways_end);
    tcase_add_test(tests, both_ways_agree);
    tcase_add_loop_test(tests, a_sandbox_without_openat2_is_no_obstacle, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
