/* SPDX-License-Identifier: Apache-2.0 */
/* Of files that look like those of MPICH or UCX in shared memory only those go that nobody has: also where the one who
 * has it is not to be seen in /proc, as processes of another container are not. */
#include "ranks/launch.h"
#include "support/run_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME "mpich_shar_tmpAbCdEf"
enum { BYTES = 4096, SKIPPED = 77 };

static char folder[] = "/dev/shm/tmp_remains_XXXXXX";

static char *path_of(const char *name)
{
    static char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_file(const char *name)
{
    int file = open(path_of(name), O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(ftruncate(file, BYTES), 0);
    return file;
}

/* Is it there after the removal of what is not older than that? */
static bool stays(const char *name, time_t since)
{
    remove_segments(folder, since);
    return access(path_of(name), F_OK) == 0;
}

START_TEST(goes_where_nobody_has_it)
{
    static const char *const names[] = { NAME, "ucx_shm_posix_5917696a" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        close(make_file(names[i]));
        ck_assert(!stays(names[i], 0));
    }
}
END_TEST

START_TEST(stays_where_it_is_older_or_another)
{
    close(make_file(NAME));
    ck_assert(stays(NAME, time(NULL) + 100));
    ck_assert_int_eq(unlink(path_of(NAME)), 0);
    close(make_file("psm_shm"));
    ck_assert(stays("psm_shm", 0));
    ck_assert_int_eq(unlink(path_of("psm_shm")), 0);
    ck_assert_int_eq(symlink("/dev/null", path_of(NAME)), 0);
    ck_assert(stays(NAME, 0));
    ck_assert_int_eq(unlink(path_of(NAME)), 0);
}
END_TEST

START_TEST(stays_while_it_is_open_or_mapped)
{
    int file = make_file(NAME);
    ck_assert(stays(NAME, 0));
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    close(file);
    ck_assert(stays(NAME, 0));
    munmap(at, BYTES);
    ck_assert(!stays(NAME, 0));
}
END_TEST

/* Under way between two processes, the file is of none of them, and stands nowhere in /proc. */
START_TEST(stays_where_no_process_shows_it)
{
    int ends[2], file = make_file(NAME);
    char byte = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    struct iovec data = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    memcpy(CMSG_DATA(&control.head), &file, sizeof file);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(sendmsg(ends[0], &message, 0), 1);
    close(file);
    ck_assert(stays(NAME, 0));
    close(ends[0]);
    close(ends[1]);
    ck_assert(!stays(NAME, 0));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("remains");
    TCase *c = tcase_create("remains");
    if (!mkdtemp(folder)) {
        printf("skipped: there is no /dev/shm\n");
        return SKIPPED;
    }
    tcase_add_test(c, goes_where_nobody_has_it);
    tcase_add_test(c, stays_where_it_is_older_or_another);
    tcase_add_test(c, stays_while_it_is_open_or_mapped);
    tcase_add_test(c, stays_where_no_process_shows_it);
    suite_add_tcase(s, c);
    int code = run_suite(s);
    rmdir(folder);
    return code;
}
