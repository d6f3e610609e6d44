#!/usr/bin/env bash
# functions that call themselves: values, ends, errors, gradients; a tree-LSTM equals its unrolled net
source tests/accept/lib.sh
expect "which functions call themselves" cases graph "functions that call each other*"
expect "on one device, by name" cases graph "a function that calls itself runs on one device*"
expect "values of calls" cases actors "a factorial calls itself*"
expect "trees of calls" cases actors "a Fibonacci number is the sum of two calls*"
expect "calls of each other" cases actors "even and odd call each other"
expect "Ackermann's function" cases actors "Ackermann's function calls itself*"
expect "ten thousand calls deep" cases actors "ten thousand calls deep*"
expect "calls in loops" cases actors "a call in a loop in a function*"
expect "dead calls" cases actors "a call in a branch that is not taken calls nothing"
expect "recursion without end" cases actors "recursion without end*"
expect "limits" cases protocol "calls end at a depth*"
expect "deadlines" cases actors "calls give way to other steps*"
expect "failures" cases actors "a failure in a call names the node*"
expect "random numbers" cases actors "random numbers in calls*"
expect "replicas" cases actors "with replicas each one's data is called for"
expect "gradients, twice" cases actors "gradients of*call*twice"
expect "a tree-LSTM, forth and back" cases actors "a tree-LSTM over random trees*"
conclude
