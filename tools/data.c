/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and machines that come with Gantry, by name: in $GANTRY_DATA, else in the data folder beside the command. */
#include "command.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *join(const char *folder, const char *below, const char *name, const char *ending)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s%s%s%s", folder, below, *name ? "/" : "", name, ending) < 0 ? NULL : path;
}

/* The command is at PREFIX/bin/gantry; where the data is from there is known when it is built, so that trees can move.
 */
static char *data_folder(void)
{
    const char *given = getenv("GANTRY_DATA");
    char self[4096];
    if (given && *given)
        return strdup(given);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = length > 0 ? memrchr(self, '/', (size_t)length) : NULL;
    if (!slash)
        return NULL;
    *slash = '\0';
    char *beside = join(self, GANTRY_DATA_FROM_COMMAND, "", ""), *folder = beside ? realpath(beside, NULL) : NULL;
    free(beside);
    return folder;
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > strlen(".json") && strcmp(entry->d_name + length - strlen(".json"), ".json") == 0;
}

void list_data(const char *kind, string_list *names)
{
    struct dirent **entries = NULL;
    char *folder = data_folder(), *path = folder ? join(folder, kind, "", "") : NULL;
    int count = path ? scandir(path, &entries, is_json, alphasort) : 0;
    *names = (string_list){ .at = count > 0 ? malloc((size_t)count * sizeof *names->at) : NULL };
    for (int i = 0; i < count; i++) {
        size_t length = strlen(entries[i]->d_name) - strlen(".json");
        char *name = names->at ? strndup(entries[i]->d_name, length) : NULL;
        if (name)
            names->at[names->count++] = name;
        free(entries[i]);
    }
    free(entries);
    free(path);
    free(folder);
}

void free_data(string_list *names)
{
    for (size_t i = 0; i < names->count; i++)
        free((void *)(uintptr_t)names->at[i]);
    free((void *)names->at);
    *names = (string_list){ 0 };
}

bool is_data(const char *kind, const char *word)
{
    string_list names;
    bool is_there = false;
    list_data(kind, &names);
    for (size_t i = 0; i < names.count; i++)
        is_there = is_there || strcmp(names.at[i], word) == 0;
    free_data(&names);
    return is_there;
}

/* Words with a slash, an ending or a dash are paths, and a file that is there comes first. */
static bool is_path(const char *word)
{
    return strpbrk(word, "/.") || *word == '-' || access(word, F_OK) == 0;
}

/* A file of that name in the folder, but for its ending. */
static bool offer_file(const char *word)
{
    char *path = NULL;
    bool is_there = asprintf(&path, "%s.json", word) >= 0 && access(path, F_OK) == 0;
    if (is_there)
        complain(" (did you mean the file \"%s\"?)\n", path);
    free(path);
    return is_there;
}

/* A machine in the place of a graph, or the other way round. */
static bool offer_other(const char *kind, const char *word)
{
    bool is_graph = strcmp(kind, "machines") == 0, is_there = is_data(is_graph ? "graphs" : "machines", word);
    if (is_there)
        complain(is_graph ? "; it is a graph, which goes first behind the command\n"
                          : "; it is a machine, which goes behind --machine\n");
    return is_there;
}

static void no_such(const char *who, const char *kind, const char *word)
{
    string_list names;
    char near[128];
    list_data(kind, &names);
    const char *slash = strrchr(kind, '/');
    complain("gantry %s: no file \"%s\", and none of the %s that come with Gantry", who, word,
             slash ? slash + 1 : kind);
    if (offer_file(word) || offer_other(kind, word)) {
        free_data(&names);
        return;
    }
    complain("%s", near_miss(near, sizeof near, word, names.at, names.count));
    for (size_t i = 0; i < names.count && !*near; i++)
        complain("%s%s", i ? ", " : "; there are ", names.at[i]);
    complain("\n");
    free_data(&names);
}

int find_data(const char **word, char **owned, const char *who, const char *kind)
{
    if (!*word || is_path(*word))
        return EXIT_FINE;
    char *folder = data_folder(), *path = folder ? join(folder, kind, *word, ".json") : NULL;
    free(folder);
    if (!path || access(path, F_OK) != 0) {
        free(path);
        no_such(who, kind, *word);
        return EXIT_USAGE;
    }
    free(*owned);
    *word = *owned = path;
    return EXIT_FINE;
}
