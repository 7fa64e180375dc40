/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of words in bash, for `gantry help --completion bash`. */
#include "options.h"
#include <stdio.h>
#include <string.h>

static void print_options(const command *c)
{
    const option *p;
    printf("        %s) options=\"", c->name);
    for (size_t i = 0, first = 1; (p = option_at(i)); i++)
        if (offers(c, p)) {
            printf("%s--%s", first ? "" : " ", p->name);
            first = 0;
        }
    printf("\" ;;\n");
}

/* Options that take one of some words. */
static void print_names(const char *name, const char *(*at)(size_t))
{
    printf("        --%s) words=\"", name);
    for (size_t i = 0; at(i); i++)
        printf("%s%s", i ? " " : "", at(i));
    printf("\" ;;\n");
}

static void print_kinds(void)
{
    const option *p;
    printf("        ");
    for (size_t i = 0, first = 1; (p = option_at(i)); i++)
        if (p->kind != FLAG && strstr(p->value, "FILE") == NULL) {
            printf("%s--%s", first ? "" : "|", p->name);
            first = 0;
        }
    printf(") return ;;\n");
}

static void print_graph_commands(const command *const *commands, size_t count)
{
    printf("    case \"$command\" in\n        ");
    for (size_t i = 0, first = 1; i < count; i++)
        if (graphs_of(commands[i]) && strcmp(graphs_of(commands[i]), "graphs") == 0) {
            printf("%s%s", first ? "" : "|", commands[i]->name);
            first = 0;
        }
    printf(") words=\"$(_gantry_data graphs)\" ;;\n        train) words=\"$(_gantry_data graphs/models)\" ;;\n"
           "        machine) words=\"show calibrate cluster $(_gantry_data "
           "machines)\" ;;\n"
           "    esac\n");
}

void print_completion(const command *const *commands, size_t count)
{
    printf("# bash completion for gantry, written by `gantry help --completion bash`\n"
           "_gantry_data() { # names of graphs or machines that come with Gantry\n"
           "    local folder=\"${GANTRY_DATA:-$(dirname -- \"$(readlink -f -- \"$(type -P gantry)\")\")/%s}\" file\n"
           "    for file in \"$folder/$1\"/*.json; do file=\"${file##*/}\"; [ \"$file\" = '*.json' ] || echo "
           "\"${file%%.json}\"; done\n"
           "}\n_gantry() {\n"
           "    local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" "
           "command=\"${COMP_WORDS[1]}\" options words=\n"
           "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" = 1 ] || [ \"$before\" = help ]; then\n        "
           "COMPREPLY=($(compgen -W \"",
           GANTRY_DATA_FROM_COMMAND);
    for (size_t i = 0; i < count; i++)
        printf("%s ", commands[i]->name);
    printf("help version\" -- \"$word\"))\n        return\n    fi\n    case \"$command\" in\n");
    for (size_t i = 0; i < count; i++)
        print_options(commands[i]);
    printf(
        "    esac\n    if [ \"${word:0:1}\" = - ]; then\n        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
        "        return\n    fi\n");
    print_graph_commands(commands, count);
    printf("    case \"$before\" in\n");
    print_names("policy", gantry_policy_name);
    print_names("backend", gantry_backend_name);
    printf("        --machine) words=\"$(_gantry_data machines)\" ;;\n");
    print_kinds();
    printf("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n}\n"
           "complete -o filenames -F _gantry gantry\n");
}
