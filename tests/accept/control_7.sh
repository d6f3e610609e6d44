#!/usr/bin/env bash
# second order through branches, loops and softmax cross-entropy agrees with finite differences
source tests/accept/lib.sh
expect "every differentiable op, twice" cases ops "*second order*"
expect "branches" cases actors "*branch*gradient*,*gradient*branch*"
expect "loops" cases actors "*Hessian*loop*,*second order*loop*"
expect "an LSTM as a scan" cases actors "*second order*LSTM*,*Hessian*LSTM*"
expect "a gradient penalty trains" cases actors "*gradient penalty*"
conclude
