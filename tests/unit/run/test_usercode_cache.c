/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code that is kept: what is damaged or could be somebody else's is made again, and compilers end. The
 * compiler is a script that notes how often it made an object. */
#include "code.h"
#include "run/usercode/usercode.h"
#include "support/entries.h"
#include "support/faults.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

/* $CC is that script. */
static void write_compiler(const char *text)
{
    write_file("compiler", "#!/bin/sh\n");
    FILE *file = fopen(path_of("compiler"), "a");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "folder=%s\n%s\n", folder, text);
    fclose(file);
    ck_assert_int_eq(chmod(path_of("compiler"), 0755), 0);
    setenv("CC", path_of("compiler"), 1);
}

static const char noting[] = "case \" $* \" in *' -shared '*) echo x >> $folder/made;; esac\nexec cc \"$@\"";

static void make_code(void)
{
    make_folder();
    write_file("triple.c", triple_c);
    write_file("factor.h", "#define FACTOR 3\n");
    write_compiler(noting);
}

/* Objects made by the script so far. */
static int made(void)
{
    struct stat info;
    return stat(path_of("made"), &info) == 0 ? (int)info.st_size / 2 : 0;
}

/* The path of the only file of the cache. */
static const char *entry(void)
{
    char name[400] = "";
    DIR *dir = opendir(path_of("cache/gantry"));
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] != '.') {
            ck_assert_str_eq(name, "");
            snprintf(name, sizeof name, "cache/gantry/%s", e->d_name);
        }
    }
    closedir(dir);
    ck_assert_str_ne(name, "");
    return path_of(name);
}

static long size_of(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return (long)info.st_size;
}

/* The entry is not used: the object is made again, once. */
static void expect_made_again(const char *what, long which)
{
    int before = made();
    expect_factor("triple.c", 3);
    ck_assert_msg(made() == before + 1, "%s %ld: the object was made %d times", what, which, made() - before);
    expect_factor("triple.c", 3);
    ck_assert_msg(made() == before + 1, "%s %ld: the new object was not used", what, which);
    ck_assert_int_eq(cached(), 1);
}

/* ---- damage ---- */

START_TEST(truncated_objects_are_made_again)
{
    make_code();
    expect_factor("triple.c", 3);
    long size = size_of(entry());
    for (int i = 0; i < 24; i++) {
        ck_assert_int_eq(truncate(entry(), size * i / 24), 0);
        expect_made_again("length", size * i / 24);
    }
    for (long cut = 1; cut <= 40; cut += 13) {
        ck_assert_int_eq(truncate(entry(), size - cut), 0);
        expect_made_again("length", size - cut);
    }
    remove_folder();
}
END_TEST

static void flip(const char *path, long at)
{
    int fd = open(path, O_RDWR);
    char byte;
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte = (char)(byte ^ 16);
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

START_TEST(changed_objects_are_made_again)
{
    make_code();
    expect_factor("triple.c", 3);
    long size = size_of(entry());
    for (int i = 0; i < 24; i++) {
        long at = i < 12 ? size * i / 12 : size - 1 - 3 * (i - 12);
        flip(entry(), at);
        expect_made_again("byte", at);
    }
    ck_assert_int_eq(truncate(entry(), size + 4096), 0);
    expect_made_again("longer by", 4096);
    remove_folder();
}
END_TEST

/* The library's calls come here. */
static int flushed, named_before;

#define CALLED __attribute__((visibility("default")))
CALLED int fsync(int fd)
{
    flushed++;
    return (int)syscall(SYS_fsync, fd);
}

CALLED int renameat(int from, const char *old, int to, const char *new)
{
    named_before += flushed == 0;
    return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

CALLED int rename(const char *old, const char *new)
{
    return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

/* Else a crash of the computer may leave a name without its bytes. */
START_TEST(entries_are_flushed_before_they_have_their_name)
{
    make_code();
    flushed = named_before = 0;
    expect_factor("triple.c", 3);
    ck_assert_int_eq(made(), 1);
    ck_assert_int_eq(named_before, 0);
    ck_assert_int_ge(flushed, 1);
    remove_folder();
}
END_TEST

/* An entry is good for what it was made from and nothing else. */
START_TEST(an_object_under_the_name_of_another_is_made_again)
{
    char first[512], command[1200];
    make_code();
    expect_factor("triple.c", 3);
    snprintf(first, sizeof first, "%s", entry());
    snprintf(command, sizeof command, "mv %s %s/kept", first, folder);
    ck_assert_int_eq(system(command), 0);
    write_file("factor.h", "#define FACTOR 5\n");
    expect_factor("triple.c", 5);
    snprintf(command, sizeof command, "mv %s %s", entry(), first);
    ck_assert_int_eq(system(command), 0);
    write_file("factor.h", "#define FACTOR 3\n");
    expect_made_again("swapped", 0);
    remove_folder();
}
END_TEST

/* ---- what could be somebody else's ---- */

START_TEST(only_our_own_files_are_loaded)
{
    char command[1200];
    make_code();
    expect_factor("triple.c", 3);
    ck_assert_int_eq(chmod(entry(), 0666), 0);
    expect_made_again("mode", 0666);
    ck_assert_int_eq(chmod(entry(), 0620), 0);
    expect_made_again("mode", 0620);
    snprintf(command, sizeof command, "mv %s %s/kept && ln -s %s/kept %s", entry(), folder, folder, entry());
    ck_assert_int_eq(system(command), 0);
    expect_made_again("symbolic link", 0);
    char path[512];
    snprintf(path, sizeof path, "%s", entry());
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_made_again("fifo", 0);
    if (geteuid() == 0) { /* only root can give files away */
        ck_assert_int_eq(chown(entry(), 65534, (gid_t)-1), 0);
        expect_made_again("owner", 65534);
        ck_assert_int_eq(chown(path_of("cache/gantry"), 65534, (gid_t)-1), 0);
        expect_refused("triple.c", GANTRY_E_IO, "the cache folder %s/cache/gantry ", "belongs to user 65534");
    }
    remove_folder();
}
END_TEST

START_TEST(the_folder_is_made_for_us_alone)
{
    struct stat info;
    make_code();
    mode_t old = umask(0);
    expect_factor("triple.c", 3);
    umask(old);
    ck_assert_int_eq(stat(path_of("cache/gantry"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0700);
    ck_assert_int_eq(stat(path_of("cache"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0700);
    ck_assert_int_eq(stat(entry(), &info), 0);
    ck_assert_int_eq(info.st_mode & 077, 0);
    ck_assert_int_eq(chmod(path_of("cache/gantry"), 0770), 0);
    expect_refused("triple.c", GANTRY_E_IO, "the cache folder %s/cache/gantry ", "mode 0770");
    remove_folder();
}
END_TEST

/* ---- the key ---- */

/* Both compile the same text to different code. */
START_TEST(flags_of_the_compiler_count)
{
    make_code();
    write_file("factor.h", "#define FACTOR ((char)-1 < 0 ? 3 : 5)\n");
    setenv("CC", "cc -fsigned-char", 1);
    expect_factor("triple.c", 3);
    setenv("CC", "cc -funsigned-char", 1);
    expect_factor("triple.c", 5);
    setenv("CC", " cc\t-fsigned-char ", 1);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(cached(), 2);
    write_file("factor.h", "");
    setenv("CC", "cc -DFACTOR=1", 1);
    expect_factor("triple.c", 1);
    setenv("CC", "cc -DFACTOR=2", 1);
    expect_factor("triple.c", 2);
    remove_folder();
}
END_TEST

/* Words are told apart: "-DX=1 -DY" is not "-DX=1-DY". */
START_TEST(words_of_the_compiler_count)
{
    make_code();
    write_compiler("while case $1 in [abc]*) true;; *) false;; esac; do shift; done\nexec cc \"$@\"");
    char cc[256], compiler[200];
    snprintf(compiler, sizeof compiler, "%s", getenv("CC"));
    static const char *const words[] = { "ab c", "a bc", "abc", "b", "" };
    for (int i = 0; i < 5; i++) {
        snprintf(cc, sizeof cc, "%s %s", compiler, words[i]);
        setenv("CC", cc, 1);
        expect_factor("triple.c", 3);
        ck_assert_int_eq(cached(), i + 1);
    }
    remove_folder();
}
END_TEST

/* A program that notes its words and then is the compiler. */
static void make_program(const char *name)
{
    char command[1400];
    write_file("program.c", "#include <stdio.h>\n#include <unistd.h>\n"
                            "int main(int count, char **word)\n{\n    FILE *file = fopen(FOLDER \"/words\", \"a\");\n"
                            "    for (int i = 1; i < count; i++)\n        fprintf(file, \"%s\\n\", word[i]);\n"
                            "    fclose(file);\n    word[0] = \"cc\";\n    return execvp(\"cc\", word);\n}\n");
    snprintf(command, sizeof command, "cc -w -DFOLDER='\"%s\"' -o %s %s", folder, path_of(name), path_of("program.c"));
    ck_assert_int_eq(system(command), 0);
    setenv("CC", path_of(name), 1);
}

static int noted(const char *word)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen(path_of("words"), "r");
    while (file && fgets(line, sizeof line, file))
        count += strncmp(line, word, strlen(word)) == 0 && line[strlen(word)] == '\n';
    if (file)
        fclose(file);
    return count;
}

static void set_time_of_writing(const char *name, time_t seconds)
{
    struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

/* By its file, if it is one: no process has to say its version. */
START_TEST(compilers_are_known_by_their_files)
{
    char cc[600];
    make_code();
    make_program("a-gcc-12");
    set_time_of_writing("a-gcc-12", 1000000000);
    expect_factor("triple.c", 3);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(noted("--version"), 0);
    ck_assert_int_eq(noted("-shared"), 1);
    set_time_of_writing("a-gcc-12", 1000000001); /* another compiler in its place */
    expect_factor("triple.c", 3);
    ck_assert_int_eq(noted("-shared"), 2);
    set_time_of_writing("a-gcc-12", 1000000000);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(noted("-shared"), 2);
    ck_assert_int_eq(truncate(path_of("a-gcc-12"), size_of(path_of("a-gcc-12")) + 1), 0); /* of another size */
    set_time_of_writing("a-gcc-12", 1000000000);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(noted("-shared"), 3);
    ck_assert_int_eq(symlink("a-gcc-12", path_of("link")), 0); /* by the name in $PATH, too */
    snprintf(cc, sizeof cc, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", cc, 1);
    setenv("CC", "link", 1);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(noted("--version"), 0);
    remove_folder();
}
END_TEST

/* Programs that start a compiler may start another one tomorrow. */
START_TEST(what_starts_compilers_is_asked)
{
    make_code();
    make_program("ccache");
    ck_assert_int_eq(symlink("ccache", path_of("gcc")), 0);
    setenv("CC", path_of("gcc"), 1);
    expect_factor("triple.c", 3);
    ck_assert_int_gt(noted("--version"), 0);
    write_compiler("case $1 in --version) echo asked >> $folder/asked;; esac\nexec cc \"$@\"");
    ck_assert_int_eq(rename(path_of("compiler"), path_of("my-gcc")), 0);
    setenv("CC", path_of("my-gcc"), 1);
    expect_factor("triple.c", 3);
    ck_assert_int_gt(size_of(path_of("asked")), 0);
    remove_folder();
}
END_TEST

/* No key has what the assembler reads, so that nothing is kept. */
START_TEST(files_of_the_assembler_count)
{
    char text[1024];
    make_code();
    snprintf(text, sizeof text,
             "__asm__(\".section .rodata\\n.globl number\\nnumber: .incbin \\\"%s/number\\\"\\n.previous\\n\");\n"
             "extern const unsigned char number __attribute__((visibility(\"hidden\")));\n"
             "#define FACTOR number\n",
             folder);
    FILE *file = fopen(path_of("factor.h"), "w"); /* a 0 byte does not end a source */
    static const char zero[] = "static const char zero[] __attribute__((unused)) = \"\0\";\n";
    ck_assert_ptr_nonnull(file);
    fwrite(zero, 1, sizeof zero - 1, file);
    fputs(text, file);
    fclose(file);
    write_file("number", "\3");
    expect_factor("triple.c", 3);
    write_file("number", "\5");
    expect_factor("triple.c", 5);
    remove_folder();
}
END_TEST

/* Somebody saves a file while it is compiled: the object is not that of the text which was read before. */
START_TEST(sources_that_change_meanwhile_are_not_kept)
{
    make_code();
    write_compiler("case \" $* \" in *' -shared '*) echo '#define FACTOR 5' > $folder/factor.h;; esac\n"
                   "exec cc \"$@\"");
    expect_factor("triple.c", 5);
    write_compiler(noting);
    write_file("factor.h", "#define FACTOR 3\n");
    expect_factor("triple.c", 3);
    write_file("factor.h", "#define FACTOR 5\n");
    expect_factor("triple.c", 5);
    remove_folder();
}
END_TEST

/* ---- what is loaded ---- */

/* Several at once, and one that stays when it is closed: each run has its own code. */
START_TEST(objects_are_not_mixed_up)
{
    char text[64];
    make_code();
    setenv("CC", "cc -Wl,-z,nodelete", 1);
    for (int turn = 0; turn < 2; turn++) {
        gantry_run *run[4];
        gantry_schedule *s = schedule_of("triple.c");
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof text, "#define FACTOR %d\n", 4 * turn + i + 2);
            write_file("factor.h", text);
            MUST(try_new(&run[i], s, MUST_ERR));
        }
        for (int i = 0; i < 4; i++)
            expect_product(run[i], (float)(4 * turn + i + 2));
        for (int i = 0; i < 4; i++)
            gantry_run_free(run[i]);
        gantry_schedule_free(s);
    }
    remove_folder();
}
END_TEST

/* As of a shared object that is named itself: variables of the file are shared. */
START_TEST(kernels_of_one_file_share_their_object)
{
    static const char code[] = "#include <gantry/kernel.h>\n"
                               "static float next = 1;\n"
                               "gantry_status first(const gantry_launch *l);\n"
                               "gantry_status first(const gantry_launch *l)\n"
                               "{\n"
                               "    ((float *)l->arg[0].data)[0] = next++;\n"
                               "    return GANTRY_OK;\n"
                               "}\n"
                               "gantry_status second(const gantry_launch *l);\n"
                               "gantry_status second(const gantry_launch *l)\n"
                               "{\n"
                               "    return first(l);\n"
                               "}\n";
    static const char graph[] =
        "{ \"gantry\": 1, \"buffers\": { \"y\": { \"dtype\": \"f32\", \"shape\": [1], \"init\": 0, \"output\": true } "
        "},"
        "  \"kernels\": { \"first\": { \"host\": \"two.c\", \"args\": [ { \"name\": \"y\", \"access\": \"readwrite\" } "
        "] },"
        "                 \"second\": { \"host\": \"two.c\", \"args\": [ { \"name\": \"y\", \"access\": \"readwrite\" "
        "} ] } },"
        "  \"nodes\": [ { \"id\": \"a\", \"kernel\": \"first\", \"args\": { \"y\": \"y\" } },"
        "             { \"id\": \"b\", \"kernel\": \"second\", \"args\": { \"y\": \"y\" } } ] }";
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    make_code();
    write_file("two.c", code);
    options.allow_code = 1;
    MUST(gantry_graph_parse(&g, graph, strlen(graph), "user.json", folder, &options, MUST_ERR));
    gantry_schedule *s = build_schedule(g, 1);
    gantry_graph_free(g);
    uint32_t ys = build_instance(s, 0, 1, 0, 1);
    build_copy(s, 0, build_input(s, 0), ys);
    for (uint32_t node = 0; node < 2; node++) {
        build_op(s, GY_OP_LAUNCH, node, 0);
        build_use_all(s, ys, GANTRY_READWRITE);
    }
    build_copy(s, 0, ys, build_output(s, 0));
    MUST(try_new(&run, s, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, (gantry_buffer){ .id = 0 }, &host, &bytes, MUST_ERR));
    ck_assert_float_eq(*(const float *)host, 2);
    ck_assert_int_eq(made(), 1);
    gantry_run_free(run);
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

/* The file may be cut while the code is in use. */
START_TEST(loaded_code_stays_whole)
{
    make_code();
    gantry_schedule *s = schedule_of("triple.c");
    gantry_run *run = NULL;
    MUST(try_new(&run, s, MUST_ERR));
    ck_assert_int_eq(truncate(entry(), 0), 0);
    expect_product(run, 3);
    gantry_run_free(run);
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

/* ---- compilers that do not end, or badly ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A compiler that waits for ever, with a child that does; both write their ids. */
static const char sleeping[] = "sleep 1000 & echo $! $$ > $folder/ids.tmp\nmv $folder/ids.tmp $folder/ids\nwait";

static void read_ids(int id[2])
{
    FILE *file = NULL;
    for (int i = 0; i < 1000 && !(file = fopen(path_of("ids"), "r")); i++)
        poll(NULL, 0, 10);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d %d", &id[0], &id[1]), 2);
    fclose(file);
}

/* Gone, or dead and waiting for somebody to ask. */
static bool is_gone(int id)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *state = strrchr(text, ')');
    return got == 0 || !state || state[2] == 'Z' || state[2] == 'X';
}

static void expect_gone(const int id[2])
{
    for (int i = 0; i < 2; i++) {
        for (int wait = 0; wait < 500 && !is_gone(id[i]); wait++)
            poll(NULL, 0, 10);
        ck_assert_msg(is_gone(id[i]), "process %d of the compiler is still there", i);
    }
}

START_TEST(compilers_have_a_time_limit)
{
    int id[2];
    make_code();
    write_compiler(sleeping);
    setenv("GANTRY_COMPILE_SECONDS", "1", 1);
    double begin = now();
    expect_refused("triple.c", GANTRY_E_TIMEOUT,
                   "%s/triple.c was not compiled within 1 s: ", "set GANTRY_COMPILE_SECONDS to more, up to 86400");
    ck_assert_double_lt(now() - begin, 20);
    read_ids(id);
    expect_gone(id);
    ck_assert_int_eq(cached(), 0);
    remove_folder();
}
END_TEST

/* Its output stays open in a child that nobody waits for. */
START_TEST(what_compilers_leave_behind_is_ended)
{
    int id[2];
    make_code();
    write_compiler("sleep 1000 & echo $! $! > $folder/ids\nexec cc \"$@\"");
    setenv("GANTRY_COMPILE_SECONDS", "60", 1);
    double begin = now();
    expect_factor("triple.c", 3);
    ck_assert_double_lt(now() - begin, 30);
    read_ids(id);
    expect_gone(id);
    remove_folder();
}
END_TEST

START_TEST(limits_are_checked)
{
    static const char *const wrong[] = { "0", "-1", "86401", "1s", "", "99999999999999999999", "1e3" };
    char begin[128];
    make_code();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("GANTRY_COMPILE_SECONDS", wrong[i], 1);
        snprintf(begin, sizeof begin, "GANTRY_COMPILE_SECONDS is \"%s\"; give whole seconds, 1 to 86400", wrong[i]);
        expect_refused("triple.c", GANTRY_E_INVALID, begin, "");
    }
    setenv("GANTRY_COMPILE_SECONDS", "86400", 1);
    expect_factor("triple.c", 3);
    remove_folder();
}
END_TEST

/* The process that compiles ends by `number` while the compiler works: so does the compiler. */
static void end_by(int number)
{
    int id[2], result = 0;
    make_code();
    write_compiler("case \" $* \" in *' -shared '*) ;; *) exec cc \"$@\";; esac\n"
                   "echo part > ${TMPDIR:-$folder}/part\nfor word; do test \"$last\" = -o && echo part > $word; "
                   "last=$word; done\n"
                   "sleep 1000 & echo $! $$ > $folder/ids.tmp\nmv $folder/ids.tmp $folder/ids\nwait");
    gantry_schedule *s = schedule_of("triple.c");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gantry_run *run = NULL;
        setpgid(0, 0); /* signals go to this process alone */
        signal(SIGINT, SIG_DFL);
        gantry_status status = try_new(&run, s, NULL);
        _exit(status ? 1 : 2);
    }
    read_ids(id);
    ck_assert_int_eq(kill(child, number), 0);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFSIGNALED(result) && WTERMSIG(result) == number);
    expect_gone(id);
    ck_assert_int_eq(cached(), 1); /* what it left */
    write_compiler(noting);
    write_file("factor.h", "#define FACTOR 7\n"); /* another key */
    expect_factor("triple.c", 7);
    entry(); /* is the only one */
    gantry_schedule_free(s);
    remove_folder();
}

START_TEST(an_interrupt_ends_the_compiler)
{
    end_by(SIGINT);
}
END_TEST

START_TEST(a_kill_ends_the_compiler_too)
{
    end_by(SIGKILL);
}
END_TEST

/* Folders of processes that live are left alone. */
START_TEST(others_may_compile_at_the_same_time)
{
    make_code();
    write_compiler("case \" $* \" in *' -shared '*) echo $$ >> $folder/started; while ! test -e $folder/go; "
                   "do sleep 0.05; done;; esac\nexec cc \"$@\"");
    pid_t child[3];
    gantry_schedule *s = schedule_of("triple.c");
    fflush(NULL);
    for (int i = 0; i < 3; i++) {
        if ((child[i] = fork()) == 0) {
            gantry_run *run = NULL;
            gantry_status status = try_new(&run, s, NULL);
            if (!status)
                expect_product(run, 3);
            _exit(status ? 1 : 0);
        }
    }
    for (int i = 0; i < 1000 && (access(path_of("started"), F_OK) || size_of(path_of("started")) < 6); i++)
        poll(NULL, 0, 10);
    poll(NULL, 0, 200);
    write_compiler(noting);
    write_file("factor.h", "#define FACTOR 7\n");
    expect_factor("triple.c", 7);
    write_file("factor.h", "#define FACTOR 3\n");
    write_file("go", "");
    for (int i = 0; i < 3; i++) {
        int result = 0;
        ck_assert_int_eq(waitpid(child[i], &result, 0), child[i]);
        ck_assert_int_eq(result, 0);
    }
    ck_assert_int_eq(cached(), 2);
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

START_TEST(a_compiler_that_is_killed_is_told)
{
    make_code();
    write_compiler("case \" $* \" in *' -shared '*) kill -9 $$;; esac\nexec cc \"$@\"");
    expect_refused("triple.c", GANTRY_E_GRAPH, "%s/triple.c does not compile: ", "ended by signal 9");
    ck_assert_int_eq(cached(), 0);
    write_compiler("case \" $* \" in *' -shared '*) exit 0;; esac\nexec cc \"$@\""); /* says that all is well */
    expect_refused("triple.c", GANTRY_E_GRAPH, "%s/triple.c does not compile: ", "made no object");
    ck_assert_int_eq(cached(), 0);
    write_compiler(noting);
    expect_factor("triple.c", 3);
    remove_folder();
}
END_TEST

START_TEST(a_compiler_that_talks_for_ever_is_ended)
{
    make_code();
    write_compiler("exec yes");
    expect_refused("triple.c", GANTRY_E_GRAPH, "%s/triple.c does not compile: ", "more than 256 MiB");
    ck_assert_int_eq(cached(), 0);
    remove_folder();
}
END_TEST

/* A daemon may have no standard input and output. */
START_TEST(closed_descriptors_do_not_matter)
{
    for (int closed = 1; closed < 8; closed++) {
        int kept[3], result = 0;
        make_code();
        gantry_schedule *s = schedule_of("triple.c");
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            gantry_run *run = NULL;
            for (int fd = 0; fd < 3; fd++) {
                kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
                if (closed >> fd & 1)
                    close(fd);
            }
            gantry_status status = try_new(&run, s, NULL);
            for (int fd = 0; fd < 3; fd++)
                if ((closed >> fd & 1) && close(fd) == 0) /* nothing was left open in their place */
                    status = GANTRY_E_CHECK;
            for (int fd = 0; fd < 3; fd++)
                dup2(kept[fd], fd);
            if (status == GANTRY_OK)
                expect_product(run, 3);
            _exit(status ? 1 : 0);
        }
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert_msg(result == 0, "descriptors closed: %d", closed);
        gantry_schedule_free(s);
        remove_folder();
    }
}
END_TEST

START_TEST(programs_that_take_every_child_are_told)
{
    make_code();
    signal(SIGCHLD, SIG_IGN);
    expect_refused("triple.c", GANTRY_E_IO, "whether %s/triple.c compiled is not known", "ignores SIGCHLD");
    signal(SIGCHLD, SIG_DFL);
    expect_factor("triple.c", 3);
    remove_folder();
}
END_TEST

/* Every allocation fails once, with and without a kept object: out of memory or, where the cache cannot be read, as
 * ever; nothing stays open. */
START_TEST(out_of_memory)
{
    int failures = 0;
    make_code();
    gantry_schedule *s = schedule_of("triple.c");
    for (int kept = 0; kept < 2; kept++) {
        bool hit = true;
        for (int k = 0; hit; k++) {
            gy_object object = { 0 };
            gantry_error err = { 0 };
            char path[512];
            if (!kept && cached())
                unlink(entry());
            snprintf(path, sizeof path, "%s", path_of("triple.c"));
            long before = count_entries("/proc/self/fd");
            ck_assert_int_gt(before, 0);
            faults_after(k);
            gantry_status status = gy_compile_c(&object, path, NULL, (gy_said){ 0 }, &err);
            hit = faults_off();
            ck_assert_msg(status == GANTRY_OK || (hit && status == GANTRY_E_NOMEM), "allocation %d: %s", k, err.text);
            ck_assert(!object.at == (status != GANTRY_OK));
            ck_assert_int_eq(count_entries("/proc/self/fd"), before);
            gy_free(object.at);
            failures += status != GANTRY_OK;
        }
    }
    ck_assert_int_gt(failures, 30);
    ck_assert_int_eq(cached(), 1);
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

/* ---- sources that are no files ---- */

/* A graph that names such a file is not read; here the file becomes one between the graph and the run. */
static void expect_not_regular(const char *name, int (*make)(const char *path))
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    write_file(name, triple_c);
    gantry_schedule *s = schedule_of(name);
    ck_assert_int_eq(unlink(path_of(name)), 0);
    ck_assert_int_eq(make(path_of(name)), 0);
    ck_assert_int_eq(try_new(&run, s, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text, name), "%s", err.text);
    gantry_schedule_free(s);
}

static int make_pipe(const char *path)
{
    return mkfifo(path, 0600);
}

static int make_directory(const char *path)
{
    return mkdir(path, 0700);
}

static int make_link(const char *path)
{
    return symlink("/dev/zero", path);
}

START_TEST(sources_are_regular_files)
{
    make_code();
    expect_not_regular("pipe.c", make_pipe);
    expect_not_regular("pipe.so", make_pipe);
    expect_not_regular("folder.c", make_directory);
    expect_not_regular("zero.c", make_link);
    remove_folder();
}
END_TEST

/* "-c.c" is a file, and no option of the compiler; "@c.c" is not a file with its words. */
START_TEST(names_are_no_options)
{
    static const char *const names[] = { "-c.c", "@c.c" };
    make_code();
    ck_assert_int_eq(chdir(folder), 0);
    for (int i = 0; i < 2; i++) {
        gy_object object = { 0 };
        write_file(names[i], triple_c);
        MUST(gy_compile_c(&object, names[i], NULL, (gy_said){ 0 }, MUST_ERR));
        gy_free(object.at);
    }
    ck_assert_int_eq(chdir("/"), 0);
    remove_folder();
}
END_TEST

/* A compiler that reads a pipe waits for somebody to write. */
START_TEST(includes_that_never_end_meet_the_limit)
{
    make_code();
    ck_assert_int_eq(unlink(path_of("factor.h")), 0);
    ck_assert_int_eq(mkfifo(path_of("factor.h"), 0600), 0);
    setenv("GANTRY_COMPILE_SECONDS", "1", 1);
    expect_refused("triple.c", GANTRY_E_TIMEOUT, "%s/triple.c was not compiled within 1 s: ", "");
    remove_folder();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("user code that is kept");
    TCase *all = tcase_create("all");
    const char *limit = getenv("CACHE_TEST_SECONDS"); /* by hand, for a library that hangs */
    tcase_set_timeout(all, limit ? atof(limit) : 60);
    tcase_add_test(all, truncated_objects_are_made_again);
    tcase_add_test(all, changed_objects_are_made_again);
    tcase_add_test(all, entries_are_flushed_before_they_have_their_name);
    tcase_add_test(all, an_object_under_the_name_of_another_is_made_again);
    tcase_add_test(all, only_our_own_files_are_loaded);
    tcase_add_test(all, the_folder_is_made_for_us_alone);
    tcase_add_test(all, flags_of_the_compiler_count);
    tcase_add_test(all, words_of_the_compiler_count);
    tcase_add_test(all, compilers_are_known_by_their_files);
    tcase_add_test(all, what_starts_compilers_is_asked);
    tcase_add_test(all, files_of_the_assembler_count);
    tcase_add_test(all, sources_that_change_meanwhile_are_not_kept);
    tcase_add_test(all, objects_are_not_mixed_up);
    tcase_add_test(all, kernels_of_one_file_share_their_object);
    tcase_add_test(all, loaded_code_stays_whole);
    tcase_add_test(all, compilers_have_a_time_limit);
    tcase_add_test(all, what_compilers_leave_behind_is_ended);
    tcase_add_test(all, limits_are_checked);
    tcase_add_test(all, an_interrupt_ends_the_compiler);
    tcase_add_test(all, a_kill_ends_the_compiler_too);
    tcase_add_test(all, others_may_compile_at_the_same_time);
    tcase_add_test(all, a_compiler_that_is_killed_is_told);
    tcase_add_test(all, a_compiler_that_talks_for_ever_is_ended);
    tcase_add_test(all, closed_descriptors_do_not_matter);
    tcase_add_test(all, programs_that_take_every_child_are_told);
    tcase_add_test(all, out_of_memory);
    tcase_add_test(all, sources_are_regular_files);
    tcase_add_test(all, names_are_no_options);
    tcase_add_test(all, includes_that_never_end_meet_the_limit);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
