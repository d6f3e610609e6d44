// What is to be inlined wherever it is called.
#pragma once

// Of what a loop over elements is made of: a call would cost more than what it does, and keeps
// loops from being vectorised.
#define TROUPE_INLINE inline __attribute__((always_inline))
