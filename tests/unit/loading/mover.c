/* SPDX-License-Identifier: Apache-2.0 */
/* mover LIBRARY FOLDER [GRAPH]: opens libgantry by a relative path, goes to another folder, and prints what the back
 * end "cuda" looks for from there; with a graph, why the code that it names cannot be used, or "usable". */
#include <dlfcn.h>
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The function of that name, as the pointer that `to` points to. */
static int find(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);
    if (!found)
        fprintf(stderr, "%s\n", dlerror());
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

static int print_modules(void *library)
{
    gantry_status (*describe)(size_t i, char **text, gantry_error *err);
    void (*release)(void *memory);
    char *text = NULL;
    gantry_error err;
    if (!find(library, "gantry_backend_describe", &describe) || !find(library, "gantry_free", &release))
        return 2;
    if (describe(0, &text, &err))
        return 1;
    fputs(text, stdout);
    release(text);
    return 0;
}

static int print_code(void *library, const char *path)
{
    gantry_status (*load)(gantry_graph **, const char *, const gantry_load_options *, gantry_error *);
    gantry_status (*machine)(gantry_machine **, int, gantry_error *);
    gantry_status (*schedule)(gantry_schedule **, gantry_graph *, const gantry_machine *,
                              const gantry_schedule_options *, gantry_error *);
    gantry_status (*make)(gantry_run **, gantry_schedule *, const gantry_run_options *, gantry_error *);
    if (!find(library, "gantry_graph_load", &load) || !find(library, "gantry_machine_virtual", &machine) ||
        !find(library, "gantry_schedule_new", &schedule) || !find(library, "gantry_run_new", &make))
        return 2;
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_run *run = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_run_options how = GANTRY_RUN_OPTIONS_INIT;
    options.allow_code = how.allow_code = 1;
    how.backend = "host";
    int failed = load(&g, path, &options, &err) || machine(&m, 1, &err) || schedule(&s, g, m, NULL, &err) ||
                 make(&run, s, &how, &err);
    puts(failed ? err.text : "usable");
    fflush(stdout);
    _exit(0); /* leaks are looked for elsewhere */
}

int main(int argc, char **argv)
{
    void *library = argc == 3 || argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library || chdir(argv[2]) != 0) {
        fprintf(stderr, "mover LIBRARY FOLDER [GRAPH]: %s\n", library ? "no such folder" : dlerror());
        return 2;
    }
    return argc == 4 ? print_code(library, argv[3]) : print_modules(library);
}
