/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/gantry.h
 * @brief Runs a graph of work on every device of a machine.
 *
 *     graph (what)  +  machine (where)  ->  schedule (who, when, at which address)  ->  run (again and again)
 *
 * Each noun is an opaque type and a JSON format, each arrow one function. See docs/design.md for the ideas and
 * docs/examples for programs. The rules common to all functions are at the top of gantry/status.h.
 */
#ifndef GANTRY_GANTRY_H
#define GANTRY_GANTRY_H

#include <gantry/files.h>
#include <gantry/graph.h>
#include <gantry/import.h>
#include <gantry/kernel.h>
#include <gantry/machine.h>
#include <gantry/run.h>
#include <gantry/schedule.h>
#include <gantry/status.h>
#include <gantry/train.h>

#endif /* GANTRY_GANTRY_H */
