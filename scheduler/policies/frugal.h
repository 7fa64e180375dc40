/* SPDX-License-Identifier: Apache-2.0 */
/* The policy that the portfolio adds where memory is short or nodes have their devices; it is not in the table: alone
 * it is a poor answer. */
#ifndef GY_SCHEDULER_POLICIES_FRUGAL_H
#define GY_SCHEDULER_POLICIES_FRUGAL_H

#include "scheduler/policies/policy.h"

extern const gy_policy gy_policy_frugal;

#endif
