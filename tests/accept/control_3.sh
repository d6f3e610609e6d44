#!/usr/bin/env bash
# loops over several devices: every interleaving of 21 short ones, 100,000 random orders of 200
# larger ones, their effects, and what they send each other
source tests/accept/lib.sh
expect "every interleaving of short loops" cases protocol "every interleaving of a loop over two devices*"
expect "100,000 random orders of 200 drawn loops, and of examples" cases protocol "*random orders of larger loops*"
expect "the window bounds what is on its way" cases protocol "an iteration beyond the window*"
expect "messages of each kind, by the trip count" cases protocol "an iteration over two devices sends*"
expect "those of loops in loops" cases protocol "loops in loops send predicates and ends*"
expect "no message but values, predicates and ends" cases protocol "loops send nothing but what crosses*"
expect "over processes" cases actors "loops alternate between processes*"
conclude
