// Text that a program draws: something to learn a language from without a download.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

// The first `characters` bytes of the tales of a seed: sentences of a small grammar over some two
// hundred words, in paragraphs. What follows a word depends on words before it: who was told of
// first comes back as "it", what was said is in quotes, numbers agree. A function of its arguments
// alone, and the beginning of what a larger number gives.
std::string draw_tales(std::uint64_t seed, std::int64_t characters);

}  // namespace troupe
