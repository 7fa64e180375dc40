/* SPDX-License-Identifier: Apache-2.0 */
/* gantry serve: the page of a schedule, which asks this process what if, and why. */
#include "view/http.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct served {
    gantry_graph *graph;
    gantry_schedule *schedule;
    const gantry_schedule *shown; /* the schedule, or the phase of it that --phase names */
} served;

/* ---- answers ---- */

static void give(http_answer *a, const char *type, char *text, size_t length)
{
    *a = (http_answer){ 200, type, text, length, gantry_free };
}

/* The last complaint, as with --json. */
static void give_complaint(http_answer *a, int code)
{
    json_t *json = take_complaint(code);
    a->status = code == EXIT_RUNNING ? 500 : 400;
    a->type = "application/json";
    a->text = json ? json_dumps(json, 0) : NULL;
    a->length = a->text ? strlen(a->text) : 0;
    a->release = free;
    json_decref(json);
}

static int page(const served *s, http_answer *a)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_export(s->shown, GANTRY_HTML, &text, &length, &err))
        return fail(&err);
    give(a, "text/html", text, length);
    return EXIT_FINE;
}

static int bad_body(const char *why)
{
    complain("the body of the request is not %s\n", why);
    return EXIT_BAD_INPUT;
}

/* The texts of an array, borrowed; a key that is not there is an empty one. */
static int read_list(string_list *to, json_t *body, const char *key)
{
    json_t *list = json_object_get(body, key), *word;
    size_t i;
    if (list && !json_is_array(list))
        return bad_body("an object of arrays of texts");
    to->at = calloc(json_array_size(list) + 1, sizeof *to->at);
    if (!to->at)
        return fail_nomem();
    json_array_foreach(list, i, word)
    {
        if (!json_is_string(word))
            return bad_body("an object of arrays of texts");
        to->at[to->count++] = json_string_value(word);
    }
    return EXIT_FINE;
}

/* The page of both, as of gantry diff. */
static int what_if(const served *s, json_t *body, http_answer *a)
{
    string_list moves = { 0 }, routes = { 0 }, resources = { 0 };
    gantry_schedule *answer = NULL;
    char *text = NULL;
    size_t length = 0;
    int code = read_list(&moves, body, "move");
    if (!code)
        code = read_list(&routes, body, "route");
    if (!code)
        code = read_list(&resources, body, "resource");
    if (!code)
        code = ask_what_if(&answer, s->shown, s->graph, &(changes){ &moves, &routes, &resources });
    if (!code)
        code = make_diff(&text, &length, s->shown, answer, GANTRY_HTML);
    if (!code)
        give(a, "text/html", text, length);
    gantry_schedule_free(answer);
    free((void *)moves.at);
    free((void *)routes.at);
    free((void *)resources.at);
    return code;
}

static int why(const served *s, json_t *body, http_answer *a)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    const char *id = json_string_value(json_object_get(body, "node"));
    if (!id)
        return bad_body("an object with the text \"node\"");
    gantry_node node = gantry_graph_find_node(s->graph, id);
    if (node.id == GANTRY_NONE)
        return fail_no_node("", s->graph, id);
    if (gantry_schedule_explain(s->schedule, node, &text, &length, &err))
        return fail(&err);
    give(a, "text/plain", text, length);
    return EXIT_FINE;
}

typedef int answer_fn(const served *s, json_t *body, http_answer *a);

static int answer_post(const served *s, const http_request *r, http_answer *a, answer_fn *answer)
{
    json_t *body = json_loadb(r->body, r->length, JSON_REJECT_DUPLICATES, NULL);
    int code = json_is_object(body) ? answer(s, body, a) : bad_body("a JSON object");
    json_decref(body);
    return code;
}

static void answer(void *user, const http_request *r, http_answer *a)
{
    static char not_found[] = "Not Found\n";
    const served *s = user;
    bool posts = strcmp(r->method, "POST") == 0;
    int code = EXIT_FINE;
    if (!posts && strcmp(r->path, "") == 0)
        code = page(s, a);
    else if (posts && strcmp(r->path, "what-if") == 0)
        code = answer_post(s, r, a, what_if);
    else if (posts && strcmp(r->path, "why") == 0)
        code = answer_post(s, r, a, why);
    else
        *a = (http_answer){ 404, "text/plain", not_found, sizeof not_found - 1, NULL };
    if (code)
        give_complaint(a, code);
}

/* ---- the command ---- */

static int serve(served *s, const options *o)
{
    http_server server;
    int code = http_listen(&server, (int)o->port);
    if (code)
        return code;
    printf("http://127.0.0.1:%d/%s/\n", server.port, server.token);
    fflush(stdout);
    if (!o->quiet)
        fprintf(stderr, "open that address in a browser on this computer; Ctrl-C ends\n");
    interrupt_stage("serving", false);
    return http_serve(&server, answer, s);
}

static int run(const options *o)
{
    served s = { 0 };
    int code = load_asked(&s.graph, &s.schedule, o);
    if (!code)
        code = (s.shown = drawn_phase(s.schedule, o)) ? EXIT_FINE : EXIT_USAGE;
    if (!code)
        code = serve(&s, o);
    gantry_schedule_free(s.schedule);
    gantry_graph_free(s.graph);
    return code;
}

const command command_serve = { "serve",
                                "GRAPH",
                                "shows a schedule in the browser, where nodes can be moved and links changed",
                                1,
                                1,
                                "port schedule phase param input machine devices backend policy effort seed optimal "
                                "max-memory balance spill unroll "
                                "limits allow-code no-fuse quiet verbose",
                                "  gantry serve cholesky --machine dgx1-v100\n"
                                "  gantry serve mlp.json --schedule mlp-schedule.json --port 8080\n",
                                run };
