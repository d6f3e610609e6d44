#!/usr/bin/env bash
# loops over several devices: every interleaving of short ones, 100,000 random orders of larger ones
source tests/accept/lib.sh
expect "every interleaving of short loops" cases protocol "every interleaving of a loop over two devices*"
expect "100,000 random orders of larger loops" cases protocol "*random orders of larger loops*"
expect "the window bounds what is on its way" cases protocol "an iteration beyond the window*"
expect "no message but values, predicates and ends" cases protocol "an iteration over two devices sends*"
expect "over processes" cases actors "loops alternate between processes*"
conclude
