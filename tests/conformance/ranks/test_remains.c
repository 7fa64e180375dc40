/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes the launcher kills, and which files it removes. Of files that look like those of MPICH or UCX in
 * shared memory only those go that nobody has: also where the one who has it is not to be seen in /proc, as processes
 * of another container are not. */
#include "ranks/launch.h"
#include "support/run_suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

/* ---- processes ---- */

#define RANK "rank" /* the word with which this program waits to be killed */

static pid_t start(const char *program, const char *const *words)
{
    pid_t child = fork();
    if (child == 0) {
        setsid(); /* as a connection of ssh that stays, and as ranks of MPICH */
        execvp(program, (char *const *)(uintptr_t)words);
        _exit(1);
    }
    return child;
}

/* Does it run this program, or whatever else it is to become? */
static void await_exec(pid_t pid, const char *program)
{
    char path[64], name[512];
    ssize_t length = 0;
    const char *found = "";
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    while (strcmp(found, program) != 0) {
        length = readlink(path, name, sizeof name - 1);
        name[length > 0 ? length : 0] = 0;
        found = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
        usleep(1000);
    }
}

static bool was_killed(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* A rank, one that a proxy of MPI has started, which stays where the proxy is, and a connection that ssh keeps. */
START_TEST(kills_ranks_and_no_others)
{
    int ends[2], status;
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t rank = start("/proc/self/exe", (const char *const[]){ "gantry", RANK, NULL });
    pid_t kept = start("sleep", (const char *const[]){ "sleep", "1000", NULL });
    char script[64];
    snprintf(script, sizeof script, "/proc/%d/exe " RANK " & echo >&%d; wait", (int)getpid(), ends[1]);
    pid_t proxy = start("sh", (const char *const[]){ "sh", "-c", script, NULL });
    await_exec(rank, "test_remains");
    await_exec(kept, "sleep");
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    usleep(100000); /* sh has begun it; whether it has become a rank yet is asked again and again below */
    kill_ranks();
    ck_assert(was_killed(rank));
    while (waitpid(proxy, &status, WNOHANG) == 0) {
        kill_ranks();
        usleep(1000);
    }
    /* Its rank is killed first, so sh may hear of that and end by itself. */
    ck_assert(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
    while (waitpid(-1, &status, WNOHANG) > 0) /* the rank of the proxy, which is a child of this process now */
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(waitpid(kept, &status, WNOHANG), 0);
    ck_assert_int_eq(kill(kept, SIGTERM), 0);
    ck_assert(!was_killed(kept));
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], RANK) == 0)
        return pause();
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
    tcase_add_test(c, kills_ranks_and_no_others);
    suite_add_tcase(s, c);
    int code = run_suite(s);
    rmdir(folder);
    return code;
}
